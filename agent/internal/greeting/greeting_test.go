package greeting

import (
	"strings"
	"testing"
)

func TestOnlyALineWithTheSecretIsAProof(t *testing.T) {
	secret := []byte("secret")
	line := New(secret)
	nonce, isProven := Read(secret, line+"\r")
	if another, _ := Read(secret, New(secret)); !isProven || another == nonce || len(line) > 253 {
		t.Errorf("%q: got %v, and %v for another line", line, isProven, another)
	}
	last := line[len(line)-1]
	for _, wrong := range []string{
		"", "SSH-2.0-mpiop", "SSH-2.0-mpiop ", "SSH-2.0-x" + line[len("SSH-2.0-mpiop"):], line + "00", line[:len(line)-2], line + " ",
		line[:len(line)-1] + string('0'+(last+1)%8), strings.Replace(line, " ", "  ", 1), New([]byte("another")),
	} {
		if _, isProven := Read(secret, wrong); isProven {
			t.Errorf("%q was taken for a proof", wrong)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(New([]byte("another")))
	f.Fuzz(func(t *testing.T, line string) {
		if _, isProven := Read([]byte("secret"), line); isProven {
			t.Errorf("%q was taken for a proof", line)
		}
	})
}
