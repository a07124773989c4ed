package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mpiop/agent/internal/client"
	"mpiop/agent/internal/wire"
)

// A daemon of Open MPI 5 as far as this test needs one: it connects to where its command line says, speaks, and waits for mpirun's answer.
const daemon = `address=${2#*tcp://}
exec 3<>"/dev/tcp/${address%%:*}/$(echo "$address" | cut -d: -f2)"
echo hello >&3
`

// called is a client below mpirun, and mpirun's side of the daemon's connection.
type called struct {
	client   *client.Client
	listener *net.TCPListener
	mpirun   net.Conn
	ended    chan error
	code     int          // when it has ended
	held     []int        // the descriptors that outlive it
	lost     atomic.Value // the error that mpirun is ended for
}

// callDaemon returns when the daemon has connected. The daemon does what then says once mpirun has answered.
func callDaemon(t *testing.T, place *place, then string) *called {
	t.Helper()
	made := startDaemon(t, place, "read -r _ <&3\n"+then)
	check(t, made.listener.SetDeadline(time.Now().Add(20*time.Second)))
	var err error
	made.mpirun, err = made.listener.Accept()
	check(t, err)
	check(t, made.mpirun.SetDeadline(time.Now().Add(20*time.Second)))
	t.Cleanup(func() { _ = made.mpirun.Close() })
	return made
}

func startDaemon(t *testing.T, place *place, then string) *called {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	script := filepath.Join(t.TempDir(), "daemon")
	check(t, os.WriteFile(script, []byte(daemon+then+"\n"), 0o600))
	command := fmt.Sprintf(`exec bash %s prte_hnp_uri "prterun-pi@0.0;tcp://10.9.8.7,127.0.0.1:%d:24,8"`, script, listener.Addr().(*net.TCPAddr).Port)
	made := &called{client: place.client(command), listener: listener.(*net.TCPListener), ended: make(chan error, 1)}
	made.client.Lost = func(err error) { made.lost.Store(err.Error()) }
	made.client.Hold = func(descriptors []uintptr) error {
		for _, each := range descriptors {
			held, err := syscall.Dup(int(each))
			check(t, err)
			made.held = append(made.held, held)
		}
		return nil
	}
	go func() {
		code, err := made.client.Run()
		made.code = code
		made.ended <- err
	}()
	return made
}

// answer is what mpirun says to a daemon that has connected.
func (c *called) answer(t *testing.T) {
	t.Helper()
	_, err := c.mpirun.Write([]byte("welcome\n"))
	check(t, err)
}

// told returns what mpirun was ended for; "" if it was not.
func (c *called) told() string {
	text, _ := c.lost.Load().(string)
	return text
}

// Whoever sees the end of the daemon's connection has been ended before, if the daemon is lost: mpirun would take that for a success.
func TestMpirunIsEndedBeforeItSeesThatItsDaemonIsLost(t *testing.T) {
	const killed = "127.0.0.1 on node node-7: signal 9 ended what mpirun started there"
	for name, row := range map[string]struct{ then, lost string }{
		"it ends by itself":                  {"exit 0", ""},
		"it says something last":             {"echo more >&3; exit 0", ""},
		"it is killed":                       {"kill -9 $$", killed},
		"it is killed, and leaves something": {"(trap \"\" TERM; sleep 4726.25) 3>&- & kill -9 $$", killed},
	} {
		t.Run(name, func(t *testing.T) {
			called := callDaemon(t, serve(t, wire.Interval), row.then)
			called.answer(t)
			text, err := io.ReadAll(called.mpirun)
			check(t, err)
			if called.told() != row.lost || !strings.HasPrefix(string(text), "hello\n") {
				t.Errorf("lost %q, and mpirun heard %q", called.told(), text)
			}
			if strings.Contains(row.then, "more") != strings.Contains(string(text), "more") {
				t.Errorf("mpirun heard %q", text)
			}
			check(t, <-called.ended)
		})
	}
}

func TestMpirunIsEndedBeforeItSeesThatItsHostIsLost(t *testing.T) {
	place := serve(t, wire.Interval)
	through := forwarded(t, place)
	called := callDaemon(t, place, "sleep 4726.5")
	_, err := bufio.NewReader(called.mpirun).ReadString('\n')
	check(t, err)
	through.cut()
	if _, err := called.mpirun.Read(make([]byte, 1)); err == nil || !strings.Contains(called.told(), " on node node-7: lost: the connection to ") {
		t.Errorf("lost %q: %v", called.told(), err)
	}
	if err := <-called.ended; err == nil || err.Error() != called.told() {
		t.Errorf("the client reports %v after %q", err, called.told())
	}
}

// mpirun takes an end of the connection that it did not order for a success, unless it knows the daemon's exit code before.
func TestMpirunLearnsTheExitCodeOfItsDaemonFirst(t *testing.T) {
	for name, row := range map[string]struct {
		then string
		code int
	}{
		"it obeys a TERM":                  {"exit 1", 1},
		"its parent reports that it ended": {"sleep 4726.75 & exec 3>&-; kill -9 $!; wait; exit 255", 255},
	} {
		t.Run(name, func(t *testing.T) {
			called := callDaemon(t, serve(t, wire.Interval), row.then)
			called.answer(t)
			check(t, <-called.ended)
			if called.code != row.code || called.told() != "" {
				t.Errorf("got %d, lost %q", called.code, called.told())
			}
			reader := bufio.NewReader(called.mpirun)
			_, err := reader.ReadString('\n')
			check(t, err)
			check(t, called.mpirun.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
			if _, err := reader.ReadByte(); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the client has ended, and the connection too: %v", err)
			}
			if len(called.held) != 1 {
				t.Fatalf("held %v", called.held)
			}
			check(t, syscall.Close(called.held[0]))
			check(t, called.mpirun.SetReadDeadline(time.Now().Add(20*time.Second)))
			if _, err := reader.ReadByte(); !errors.Is(err, io.EOF) {
				t.Errorf("nobody holds the connection: %v", err)
			}
		})
	}
}

// A daemon may end before we have its connection. Then mpirun never hears of it, or the connection is held.
func TestMpirunNeverLosesADaemonThatEndsAtOnce(t *testing.T) {
	place := serve(t, wire.Interval)
	for range 20 {
		called := startDaemon(t, place, "exit 255")
		check(t, <-called.ended)
		if called.code != 255 || called.told() != "" {
			t.Errorf("got %d, lost %q", called.code, called.told())
		}
		if text, err := called.hear(t); text != "" && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("mpirun lost a daemon that had said %q: %v", text, err)
		}
		for _, each := range called.held {
			check(t, syscall.Close(each))
		}
	}
}

// hear returns what mpirun has of a daemon that has ended, and how that ends.
func (c *called) hear(t *testing.T) (string, error) {
	t.Helper()
	soon := time.Now().Add(50 * time.Millisecond)
	check(t, c.listener.SetDeadline(soon))
	mpirun, err := c.listener.Accept()
	if err != nil {
		return "", err
	}
	defer mpirun.Close()
	check(t, mpirun.SetReadDeadline(soon))
	text, err := io.ReadAll(mpirun)
	return string(text), err
}

func TestMpirunIsEndedIfNobodyCanHoldItsConnection(t *testing.T) {
	called := callDaemon(t, serve(t, wire.Interval), "exit 255")
	called.client.Hold = func([]uintptr) error { return syscall.EAGAIN }
	called.answer(t)
	_, err := io.ReadAll(called.mpirun)
	check(t, err)
	if called.told() != "127.0.0.1 on node node-7: lost: its daemon ended with code 255" {
		t.Errorf("lost %q", called.told())
	}
	check(t, <-called.ended)
}

func TestNothingIsHeldForAnMpirunThatHasEnded(t *testing.T) {
	called := callDaemon(t, serve(t, wire.Interval), "exit 1")
	_, err := bufio.NewReader(called.mpirun).ReadString('\n')
	check(t, err)
	check(t, called.mpirun.Close())
	check(t, <-called.ended)
	if called.told() != "" || len(called.held) > 0 {
		t.Errorf("lost %q, held %v", called.told(), called.held)
	}
}

// mpirun reports by itself that a daemon could not be started.
func TestADaemonThatNeverConnectedIsNoLoss(t *testing.T) {
	calling := serve(t, wire.Interval).client(`prted-is-missing prte_hnp_uri "x;tcp://127.0.0.1:1:24"`)
	calling.Lost = func(err error) { t.Errorf("lost %v", err) }
	if code, err := calling.Run(); code != 127 || err != nil {
		t.Errorf("got %d, %v", code, err)
	}
}

// An mpirun that is not Open MPI 5's, a daemon that another daemon starts, a command of the user's: they connect as they are told.
func TestOtherCommandsStayAsTheyAre(t *testing.T) {
	place := serve(t, wire.Interval)
	for _, row := range []struct {
		command string
		isAsked bool
	}{
		{`echo prte_hnp_uri "x;tcp://10.9.8.7:1:24"`, false},
		{`echo prte_hnp_uri "x;tcp://10.9.8.7:1:24"`, true},
		{`echo orte_hnp_uri "x;tcp://10.9.8.7:1"`, true},
		{`echo prte_hnp_uri "x;tcp6://[fd00::1]:1:64"`, true},
	} {
		calling := place.client(row.command)
		var output strings.Builder
		calling.Output = &output
		if row.isAsked {
			calling.Lost = func(error) { t.Error("it ended well") }
		}
		if code, err := calling.Run(); err != nil || code != 0 || output.String() != strings.ReplaceAll(row.command[5:], `"`, "")+"\n" {
			t.Errorf("got %d, %v, %q", code, err, output.String())
		}
	}
}

// bridge stands between client and server.
type bridge struct{ connections chan net.Conn }

func (p *bridge) cut() { _ = (<-p.connections).Close() }

func forwarded(t *testing.T, place *place) *bridge {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	made := &bridge{connections: make(chan net.Conn, 16)}
	target := place.listener.Addr().String()
	go func() {
		for {
			arrived, err := listener.Accept()
			if err != nil {
				return
			}
			onward, err := net.Dial("tcp", target)
			if err != nil {
				_ = arrived.Close()
				return
			}
			made.connections <- onward
			go func() { _, _ = io.Copy(onward, arrived); _ = onward.Close() }()
			go func() { _, _ = io.Copy(arrived, onward); _ = arrived.Close() }()
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
	place.port = listener.Addr().(*net.TCPAddr).Port
	return made
}
