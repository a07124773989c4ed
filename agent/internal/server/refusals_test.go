package server_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
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
		"ciphers":       {Ciphers: append(insecure.Ciphers, ssh.CipherAES128CTR)},
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

// flood opens connections that never log in, and holds them until its input ends.
func flood(address, source, count string) {
	wanted, _ := strconv.Atoi(count)
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}, Timeout: 30 * time.Second}
	held := make([]net.Conn, 0, wanted)
	for at := range wanted {
		connection, err := dialer.Dial("tcp", address)
		if err != nil {
			continue
		}
		if at%2 == 0 {
			// Half of them say who they are, and then nothing.
			_, _ = connection.Write([]byte("SSH-2.0-flood\r\n"))
		}
		held = append(held, connection)
	}
	fmt.Println(len(held))
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// 20,000 connections, of which half come from the same address as the job's own.
func TestConnectionsThatDoNotLogInStopNobody(t *testing.T) {
	place := serve(t, wire.Interval)
	self, err := os.Executable()
	check(t, err)
	const each = 5000
	var reports []*bufio.Reader
	for _, source := range []string{"127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.3"} {
		report, finish := startFlood(t, self, place.listener.Addr().String(), source, each)
		defer finish()
		reports = append(reports, report)
	}
	var slowest time.Duration
	var group sync.WaitGroup
	done := make(chan struct{})
	group.Go(func() {
		for at := 0; ; at++ {
			begin := time.Now()
			if code, output, _ := place.run(t, "echo here", ""); code != 0 || output != "here\n" {
				t.Errorf("got %d %q", code, output)
			}
			slowest = max(slowest, time.Since(begin))
			select {
			case <-done:
				if at > 10 {
					return
				}
			default:
			}
		}
	})
	opened := 0
	for _, report := range reports {
		line, err := report.ReadString('\n')
		check(t, err)
		number, err := strconv.Atoi(line[:len(line)-1])
		check(t, err)
		opened += number
	}
	close(done)
	group.Wait()
	t.Logf("%d connections were held; the slowest command took %v", opened, slowest)
	if opened < 4*each*9/10 || slowest > 10*time.Second {
		t.Errorf("%d connections, the slowest command took %v", opened, slowest)
	}
}

func startFlood(t *testing.T, self, address, source string, count int) (*bufio.Reader, func()) {
	t.Helper()
	input, hold, err := os.Pipe()
	check(t, err)
	output, said, err := os.Pipe()
	check(t, err)
	_, ended, err := all.Start(self, []string{self, "flood", address, source, strconv.Itoa(count)}, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{input.Fd(), said.Fd(), 2},
	})
	check(t, err)
	_, _ = input.Close(), said.Close()
	return bufio.NewReader(output), func() {
		_ = hold.Close()
		<-ended
		_ = output.Close()
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
