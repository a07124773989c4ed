// Package key reads the key of a job and makes of it what both sides of a connection prove themselves with.
package key

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"os"

	"golang.org/x/crypto/ssh"
)

// What is derived from the same Secret is kept apart by its purpose.
const (
	hostPurpose     = "mpiop-agent host key, version 1"
	greetingPurpose = "mpiop-agent greeting, version 1"
)

// Key is what the Secret of a job gives to each of its Pods.
type Key struct {
	// Member is the private key of the Secret: a client signs with it.
	Member ssh.Signer
	// Host is derived from the same private key: a server signs with it. It is Ed25519 whatever the Secret holds.
	Host ssh.Signer
	// Greeting is derived too: by it a client proves in its first line that it is of the job.
	Greeting []byte
}

// Read reads the private key in the file at path.
func Read(path string) (Key, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Key{}, fmt.Errorf("cannot read the job's key: %w", err)
	}
	key, err := Parse(text)
	if err != nil {
		return Key{}, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

// Parse takes a private key in any form that the operator makes: PEM of ECDSA or RSA, or OpenSSH's of Ed25519.
func Parse(text []byte) (Key, error) {
	member, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return Key{}, fmt.Errorf("no private key of a job: %w", err)
	}
	seed, err := hkdf.Key(sha256.New, text, nil, hostPurpose, ed25519.SeedSize)
	if err != nil {
		return Key{}, fmt.Errorf("cannot derive the host key: %w", err)
	}
	greeting, err := hkdf.Key(sha256.New, text, nil, greetingPurpose, sha256.Size)
	if err != nil {
		return Key{}, fmt.Errorf("cannot derive the secret of greetings: %w", err)
	}
	host, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(seed))
	if err != nil {
		return Key{}, fmt.Errorf("cannot use the derived host key: %w", err)
	}
	return Key{Member: member, Host: host, Greeting: greeting}, nil
}

// Same returns whether both are the same public key.
func Same(a, b ssh.PublicKey) bool {
	return subtle.ConstantTimeCompare(a.Marshal(), b.Marshal()) == 1
}
