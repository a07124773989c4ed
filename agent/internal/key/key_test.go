package key_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"mpiop/agent/internal/key"
	"mpiop/agent/internal/testkit"
)

// texts returns a private key in each form that the operator's --ssh-key-type makes.
func texts(t testing.TB) map[string][]byte {
	t.Helper()
	made := map[string][]byte{}
	for name, curve := range map[string]elliptic.Curve{"p256": elliptic.P256(), "p384": elliptic.P384(), "p521": elliptic.P521()} {
		private, err := ecdsa.GenerateKey(curve, rand.Reader)
		check(t, err)
		der, err := x509.MarshalECPrivateKey(private)
		check(t, err)
		made[name] = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	}
	private, err := rsa.GenerateKey(rand.Reader, 3072)
	check(t, err)
	made["rsa"] = pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)})
	made["ed25519"] = testkit.KeyText(t)
	return made
}

var check = testkit.Check

func TestEveryTypeOfKeyMakesOneHostKey(t *testing.T) {
	seen := map[string]string{}
	for name, text := range texts(t) {
		first, err := key.Parse(text)
		check(t, err)
		second, err := key.Parse(text)
		check(t, err)
		if !key.Same(first.Host.PublicKey(), second.Host.PublicKey()) {
			t.Errorf("%s: two Pods of a job made different host keys", name)
		}
		if first.Host.PublicKey().Type() != ssh.KeyAlgoED25519 {
			t.Errorf("%s: the host key is %s", name, first.Host.PublicKey().Type())
		}
		public := string(first.Host.PublicKey().Marshal())
		if other, found := seen[public]; found {
			t.Errorf("%s and %s made the same host key", name, other)
		}
		seen[public] = name
		if key.Same(first.Host.PublicKey(), first.Member.PublicKey()) {
			t.Errorf("%s: the host key is the member's", name)
		}
	}
}

func TestWhatIsNoKeyIsRefusedAndNotShown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if _, err := key.Read(path); err == nil {
		t.Error("a file that is missing was read")
	}
	check(t, os.WriteFile(path, []byte("secret words"), 0o600))
	_, err := key.Read(path)
	if err == nil || strings.Contains(err.Error(), "secret words") || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range texts(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		made, err := key.Parse(text)
		if (err == nil) != (made.Host != nil && made.Member != nil) {
			t.Errorf("%q: key %v, error %v", text, made, err)
		}
	})
}
