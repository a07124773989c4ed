// Package greeting is the first line of a client (RFC 4253, 4.2). Its comment proves that the client has the job's key, so that a server
// knows it before it spends time and memory on a key exchange.
package greeting

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"mpiop/agent/internal/wire"
)

const nonceSize, proofSize = 16, 16

// Nonce makes each proof another one, so that a server can refuse one that it has seen.
type Nonce [nonceSize]byte

// New returns a line with a proof, without its end.
func New(secret []byte) string {
	var nonce Nonce
	_, _ = rand.Read(nonce[:]) // it never fails (Go 1.24)
	return wire.Version + " " + hex.EncodeToString(append(nonce[:], proof(secret, nonce)...))
}

// Read returns the nonce of a line that proves that its sender has the secret.
func Read(secret []byte, line string) (nonce Nonce, isProven bool) {
	text, found := strings.CutPrefix(strings.TrimSuffix(line, "\r"), wire.Version+" ")
	given, err := hex.DecodeString(text)
	if !found || err != nil || len(given) != nonceSize+proofSize {
		return Nonce{}, false
	}
	nonce = Nonce(given[:nonceSize])
	return nonce, hmac.Equal(given[nonceSize:], proof(secret, nonce))
}

func proof(secret []byte, nonce Nonce) []byte {
	sum := hmac.New(sha256.New, secret)
	sum.Write(nonce[:])
	return sum.Sum(nil)[:proofSize]
}
