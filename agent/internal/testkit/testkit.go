// Package testkit is what the tests of several packages need.
package testkit

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"mpiop/agent/internal/key"
)

// Check ends the test if there is an error.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Measured skips a test that measures, if the race detector is on: it slows everything down. `hack/agent check` runs these tests without it.
func Measured(t testing.TB) {
	t.Helper()
	if isRaced {
		t.Skip("it is measured without the race detector")
	}
}

// KeyText returns a new private key as a file holds it.
func KeyText(t testing.TB) []byte {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	Check(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	Check(t, err)
	return pem.EncodeToMemory(block)
}

// Key returns the keys of a new job.
func Key(t testing.TB) key.Key {
	t.Helper()
	made, err := key.Parse(KeyText(t))
	Check(t, err)
	return made
}

// Eventually waits for what is to come within ten seconds.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatal("never: " + what)
}
