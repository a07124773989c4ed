package server_test

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"mpiop/agent/internal/client"
	"mpiop/agent/internal/wire"
)

const fast = 200 * time.Millisecond

// A rank that leaves its session and its parents, one that ignores TERM, and one that is stopped.
const escapees = `
(setsid sh -c 'sleep 4712.25 & exec sleep 4712.25' &)
(trap '' TERM HUP; sleep 4712.25 & wait) &
sleep 4712.25 & kill -STOP $!
echo ready; sleep 4712.25; sleep 4712.25`

func TestNothingOutlivesItsConnection(t *testing.T) {
	place := serve(t, wire.Interval)
	connection, err := place.dial(t, place.job)
	check(t, err)
	started, err := connection.NewSession()
	check(t, err)
	output, err := started.StdoutPipe()
	check(t, err)
	check(t, started.Start(escapees))
	_, err = io.ReadFull(output, make([]byte, len("ready\n")))
	check(t, err)
	eventually(t, "all are there", func() bool { return len(running("4712.25")) >= 5 })
	check(t, connection.Close())
	eventually(t, "all have ended", func() bool { return len(running("4712.25")) == 0 })
}

func TestNothingOutlivesItsCommand(t *testing.T) {
	place := serve(t, wire.Interval)
	code, output, _ := place.run(t, "(setsid sleep 4713.25 &); sleep 4713.25 & echo done; exit 4", "")
	if code != 4 || output != "done\n" || len(running("4713.25")) > 0 {
		t.Errorf("got %d %q, left %v", code, output, running("4713.25"))
	}
}

func TestASubreaperThatIsKilledTakesItsCommandAlong(t *testing.T) {
	t.Parallel()
	place := serve(t, wire.Interval)
	code, _, _ := place.run(t, "sleep 4714.25 & kill -KILL $PPID; sleep 4714.25", "")
	if code != 137 {
		t.Errorf("got %d", code)
	}
	eventually(t, "all have ended", func() bool { return len(running("4714.25")) == 0 })
	// What has left its session is not found, and must not hold the connection for ever.
	escaped := `setsid timeout 60 sh -c 'while sleep 0.1; do echo 4721.25; done' & sleep 0.5; kill -KILL $PPID`
	if code, err := runWithin(t, place.client(escaped), 30*time.Second); code != 137 || err != nil {
		t.Errorf("with a process in another session: got %d, %v", code, err)
	}
	eventually(t, "it has ended", func() bool { return len(running("4721.25")) == 0 })
}

// When a Pod ends its container gets TERM: all ranks get it, and may write what they have for as long as the Pod has, though what
// started them has ended.
func TestWhenThePodEndsRanksHaveItsGrace(t *testing.T) {
	t.Parallel()
	place := serve(t, wire.Interval)
	folder := t.TempDir()
	begun, saved := filepath.Join(folder, "begun"), filepath.Join(folder, "saved")
	rank := `trap 'sleep 5.5; echo done >` + saved + `; exit' TERM; sleep 4715.25 & : >` + begun + `; wait`
	result := make(chan int, 1)
	go func() {
		code, _ := place.client(`setsid sh -c "` + rank + `" & sleep 4715.25; exit 5`).Run()
		result <- code
	}()
	eventually(t, "it runs", func() bool {
		_, err := os.Stat(begun)
		return err == nil && len(running("4715.25")) > 3
	})
	place.serving.TerminateAll()
	if code := <-result; code != 143 {
		t.Errorf("got %d", code)
	}
	if text, err := os.ReadFile(saved); err != nil || string(text) != "done\n" {
		t.Errorf("got %q, %v", text, err)
	}
	if left := running("4715.25"); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// Open MPI 5 takes it for a success when a daemon obeys: daemons live on, and tell of their ranks.
func TestWhenThePodEndsDaemonsLiveOn(t *testing.T) {
	place := serve(t, wire.Interval)
	daemon := filepath.Join(t.TempDir(), "prted")
	check(t, os.WriteFile(daemon, []byte("#!/bin/sh\ntrap 'exit 0' TERM\nsleep 4718.25 & wait $!; exit $?\n"), 0o700))
	result := make(chan int, 1)
	go func() {
		code, _ := place.client(daemon + "; exit $?").Run()
		result <- code
	}()
	eventually(t, "it runs", func() bool { return len(running("4718.25")) > 0 })
	place.serving.TerminateAll()
	if code := <-result; code != 143 {
		t.Errorf("got %d", code)
	}
}

// proxy stands between client and server; once it is cut, nothing passes, and nobody is told.
type proxy struct {
	listener net.Listener
	isCut    atomic.Bool
}

func cutAbove(t *testing.T, place *place) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	made := &proxy{listener: listener}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", place.listener.Addr().String())
			if err != nil {
				return
			}
			go made.pass(near, far)
			go made.pass(far, near)
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
	return made
}

func (p *proxy) pass(from, to net.Conn) {
	buffer := make([]byte, 1<<15)
	for {
		n, err := from.Read(buffer)
		if p.isCut.Load() {
			continue
		}
		if err != nil {
			_ = to.Close()
			return
		}
		_, _ = to.Write(buffer[:n])
	}
}

func TestAHostThatGoesSilentIsLostOnBothSides(t *testing.T) {
	place := serve(t, fast)
	proxy := cutAbove(t, place)
	calling := place.client("sleep 4716.25; true")
	calling.Port = proxy.listener.Addr().(*net.TCPAddr).Port
	calling.Times.Interval = fast
	lost := make(chan error, 1)
	go func() {
		code, err := calling.Run()
		if code != wire.Lost {
			t.Errorf("got %d", code)
		}
		lost <- err
	}()
	eventually(t, "it runs", func() bool { return len(running("4716.25")) > 0 })
	time.Sleep(5 * wire.Silent * fast) // as long as nothing is wrong, an idle connection stays
	if len(running("4716.25")) == 0 {
		t.Fatal("an idle command was ended")
	}
	proxy.isCut.Store(true)
	var err error
	select {
	case err = <-lost:
	case <-time.After(10 * time.Second):
		t.Fatal("the client did not notice")
	}
	want := "127.0.0.1 on node node-7: lost: no answer from 127.0.0.1 for 600ms"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	eventually(t, "the server ended it", func() bool { return len(running("4716.25")) == 0 })
}

// mpirun may be stopped, or its terminal: a client that reads nothing for long is not lost, nor is its host.
func TestAReaderThatIsSlowIsNotLost(t *testing.T) {
	place := serve(t, fast)
	calling := place.client("head -c 20000000 /dev/zero")
	calling.Times.Interval = fast
	reader := &slow{pause: 10 * wire.Silent * fast}
	calling.Output = reader
	code, err := calling.Run()
	check(t, err)
	if code != 0 || reader.bytes != 20_000_000 {
		t.Errorf("got %d and %d bytes", code, reader.bytes)
	}
}

// Nor does it lose what its host said last: the command has long ended when it reads again.
func TestAReaderThatStandsStillAtTheEndLosesNothing(t *testing.T) {
	t.Parallel()
	place := serve(t, wire.Interval)
	const size = 2_170_000 // more than fits between both sides, by less than a pipe holds
	calling := place.client("head -c 2170000 /dev/zero")
	reader := &slow{pause: 7 * time.Second}
	calling.Output = reader
	code, err := calling.Run()
	check(t, err)
	if code != 0 || reader.bytes != size {
		t.Errorf("got %d and %d bytes", code, reader.bytes)
	}
}

type slow struct {
	count
	pause time.Duration
}

func (s *slow) Write(text []byte) (int, error) {
	time.Sleep(s.pause)
	s.pause = 0
	return s.count.Write(text)
}

func TestAServerThatEndsIsNamed(t *testing.T) {
	place := serve(t, wire.Interval)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer listener.Close()
	go func() {
		raw, err := listener.Accept()
		if err != nil {
			return
		}
		config := &ssh.ServerConfig{NoClientAuth: true}
		config.AddHostKey(place.job.Host)
		connection, channels, requests, err := ssh.NewServerConn(raw, config)
		if err != nil {
			return
		}
		go ssh.DiscardRequests(requests)
		channel, channelRequests, err := (<-channels).Accept()
		if err != nil {
			return
		}
		_ = (<-channelRequests).Reply(true, nil)
		_ = channel
		_ = connection.Close()
	}()
	calling := place.client("true")
	calling.Port = listener.Addr().(*net.TCPAddr).Port
	code, err := calling.Run()
	var lost *client.LostError
	if code != wire.Lost || !errors.As(err, &lost) || !strings.Contains(err.Error(), "127.0.0.1: lost: the connection to 127.0.0.1 ended") {
		t.Errorf("got %d, %v", code, err)
	}
}

func TestASignalWhileTheClientWaits(t *testing.T) {
	place := serve(t, wire.Interval)
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	calling := place.client("true")
	calling.Port = 1 // nobody answers there
	calling.Signals = signals
	if code, err := calling.Run(); code != 143 || err != nil {
		t.Errorf("got %d, %v", code, err)
	}
}
