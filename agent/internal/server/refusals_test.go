package server_test

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"mpiop/agent/internal/testkit"
	"mpiop/agent/internal/wire"
)

func TestOnlyTheJobsKeyGetsIn(t *testing.T) {
	place := serve(t, wire.Interval)
	if _, err := place.dial(t, testkit.Key(t)); err == nil {
		t.Error("another job's key got in")
	}
	for name, method := range map[string]ssh.AuthMethod{
		"a password": ssh.Password(""),
		"an answer":  ssh.KeyboardInteractive(func(string, string, []string, []bool) ([]string, error) { return nil, nil }),
	} {
		_, err := ssh.Dial("tcp", place.listener.Addr().String(), &ssh.ClientConfig{
			Auth: []ssh.AuthMethod{method}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
		})
		if err == nil {
			t.Errorf("%s got in", name)
		}
	}
}

func TestOldAlgorithmsAreRefused(t *testing.T) {
	place := serve(t, wire.Interval)
	insecure := ssh.InsecureAlgorithms()
	for name, config := range map[string]ssh.Config{
		"key exchanges": {KeyExchanges: append(insecure.KeyExchanges, ssh.KeyExchangeDH14SHA256)},
		"ciphers":       {Ciphers: append(insecure.Ciphers, ssh.CipherAES128CTR, ssh.CipherChaCha20Poly1305)},
	} {
		_, err := ssh.Dial("tcp", place.listener.Addr().String(), &ssh.ClientConfig{
			Config: config, Auth: []ssh.AuthMethod{ssh.PublicKeys(place.job.Member)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
		})
		if err == nil {
			t.Errorf("old %s were accepted", name)
		}
	}
}

func TestThereIsNothingButOneCommand(t *testing.T) {
	place := serve(t, wire.Interval)
	connection, err := place.dial(t, place.job)
	check(t, err)
	defer connection.Close()
	if _, err := connection.Listen("tcp", "127.0.0.1:0"); err == nil {
		t.Error("a port was forwarded to the client")
	}
	if _, err := connection.Dial("tcp", place.listener.Addr().String()); err == nil {
		t.Error("a port was forwarded to the server")
	}
	running, err := connection.NewSession()
	check(t, err)
	if running.RequestPty("xterm", 24, 80, nil) == nil {
		t.Error("a terminal was given")
	}
	if running.RequestSubsystem("sftp") == nil {
		t.Error("a subsystem was given")
	}
	if running.Shell() == nil {
		t.Error("a login shell was given")
	}
	if _, err := connection.NewSession(); err == nil {
		t.Error("a second session was given")
	}
	channel, requests, err := connection.OpenChannel("session", nil)
	if err == nil {
		go ssh.DiscardRequests(requests)
		_ = channel.Close()
		t.Error("a second channel was given")
	}
}

func TestASessionRunsOneCommand(t *testing.T) {
	place := serve(t, wire.Interval)
	connection, err := place.dial(t, place.job)
	check(t, err)
	defer connection.Close()
	channel, requests, err := connection.OpenChannel("session", nil)
	check(t, err)
	go ssh.DiscardRequests(requests)
	request := func(name string, payload []byte) bool {
		done, err := channel.SendRequest(name, true, payload)
		check(t, err)
		return done
	}
	if request("signal", ssh.Marshal(wire.Signal{Name: "TERM"})) {
		t.Error("a signal was sent to no command")
	}
	if request("exec", []byte("?")) {
		t.Error("a broken request ran")
	}
	if !request("exec", ssh.Marshal(wire.Exec{Command: "sleep 0.2"})) {
		t.Error("a command was refused")
	}
	if request("signal", ssh.Marshal(wire.Signal{Name: "WINCH"})) {
		t.Error("a signal was sent that has no number here")
	}
	if request("exec", ssh.Marshal(wire.Exec{Command: "true"})) {
		t.Error("a second command ran")
	}
}

// A key exchange costs time, so there is one before the login; and as many as the algorithms want after it.
func TestKeysAreExchangedOnceBeforeTheLogin(t *testing.T) {
	place := serve(t, wire.Interval)
	dial := func(threshold uint64) (*ssh.Client, error) {
		return ssh.Dial("tcp", place.listener.Addr().String(), &ssh.ClientConfig{
			User:   strings.Repeat("x", 300),
			Config: ssh.Config{RekeyThreshold: threshold}, Auth: []ssh.AuthMethod{ssh.PublicKeys(place.job.Member)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
		})
	}
	connection, err := dial(64 << 10)
	check(t, err)
	defer connection.Close()
	running, err := connection.NewSession()
	check(t, err)
	running.Stdin = bytes.NewReader(make([]byte, 1<<20))
	if output, err := running.Output("wc -c"); err != nil || string(bytes.TrimSpace(output)) != "1048576" {
		t.Errorf("after the login: got %q, %v", output, err)
	}
	if _, err = dial(256); err == nil {
		t.Error("before the login: a second one was had")
	}
}

// Whatever comes before the login, nothing is run and the server goes on.
func FuzzHandshake(f *testing.F) {
	place := serve(f, wire.Interval)
	f.Add([]byte("SSH-2.0-x\r\n"))
	f.Add(append([]byte("SSH-2.0-x\r\n"), 0, 0, 0, 12, 10, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
	f.Add(recorded(f, place))
	f.Fuzz(func(t *testing.T, text []byte) {
		raw, err := net.Dial("tcp", place.listener.Addr().String())
		check(t, err)
		defer raw.Close()
		_, _ = raw.Write(text)
		_ = raw.(*net.TCPConn).CloseWrite()
		_ = raw.SetReadDeadline(time.Now().Add(5 * time.Second))
		answer, err := io.ReadAll(raw)
		if netError, ok := err.(net.Error); ok && netError.Timeout() {
			t.Errorf("the connection stays open after %q; answered %q", text, answer)
		}
		if !bytes.HasPrefix(answer, []byte(wire.Version)) && len(answer) > 0 {
			t.Errorf("answered %q", answer)
		}
	})
}

// recorded returns what a client that logs in sends.
func recorded(t testing.TB, place *place) []byte {
	t.Helper()
	raw, err := net.Dial("tcp", place.listener.Addr().String())
	check(t, err)
	copied := &recorder{Conn: raw}
	connection, _, _, err := ssh.NewClientConn(copied, "", &ssh.ClientConfig{
		Auth: []ssh.AuthMethod{ssh.PublicKeys(place.job.Member)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
	check(t, err)
	check(t, connection.Close())
	return copied.sent
}

type recorder struct {
	net.Conn
	sent []byte
}

func (r *recorder) Write(text []byte) (int, error) {
	r.sent = append(r.sent, text...)
	return r.Conn.Write(text)
}
