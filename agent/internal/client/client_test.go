package client

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mpiop/agent/internal/arguments"
	"mpiop/agent/internal/hosts"
	"mpiop/agent/internal/process"
	"mpiop/agent/internal/testkit"
)

var check = testkit.Check

// waiting is a client of the launcher, the file in which it looks for addresses, and what it said.
func waiting(t *testing.T, host string) (*Client, string, *[]string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "addresses")
	var said []string
	return &Client{
		Arguments: arguments.Arguments{Host: host},
		Job:       hosts.Job{Name: "pi", Namespace: "default"},
		Addresses: hosts.Addresses{Path: file},
		Say:       func(format string, values ...any) { said = append(said, fmt.Sprintf(format, values...)) },
		Times: Times{
			Poll: time.Millisecond, Words: 20 * time.Millisecond, ByName: time.Hour, NextName: time.Hour,
		},
	}, file, &said
}

func write(t *testing.T, file, text string) {
	t.Helper()
	check(t, os.WriteFile(file+".new", []byte(text), 0o600))
	check(t, os.Rename(file+".new", file))
}

func TestAClientWaitsForTheAddressOfItsHost(t *testing.T) {
	client, file, said := waiting(t, "pi-worker-1.pi.default.svc")
	go func() {
		time.Sleep(100 * time.Millisecond)
		_ = os.WriteFile(file, []byte("0 10.0.0.1\n1 10.0.0.2\n"), 0o600)
	}()
	address, err := client.find(t.Context())
	check(t, err)
	if address != "10.0.0.2" || len(*said) == 0 || !strings.Contains((*said)[0], "waiting for pi-worker-1.pi.default.svc: no address for") {
		t.Errorf("got %q, said %q", address, *said)
	}
}

func TestHostsWithoutAnAddress(t *testing.T) {
	client, file, _ := waiting(t, "pi-worker-1")
	write(t, file, "1 ended\n")
	_, err := client.find(t.Context())
	var lost *LostError
	if !errors.As(err, &lost) || !strings.Contains(err.Error(), "pi-worker-1: its Pod has ended") {
		t.Errorf("a Pod that has ended: got %v", err)
	}
	for name, row := range map[string]struct{ host, text string }{
		"a host of somebody else": {"10.1.2.3", "1 10.0.0.2\n"},
		"too many for a file":     {"localhost", "by-name\n"},
	} {
		client, file, _ := waiting(t, row.host)
		write(t, file, row.text)
		if address, err := client.find(t.Context()); err != nil || address != row.host {
			t.Errorf("%s: got %q, %v", name, address, err)
		}
	}
	client, file, _ = waiting(t, "localhost-worker-1")
	client.Job.Name = "localhost"
	client.Times.ByName = 10 * time.Millisecond
	client.Times.NextName = time.Millisecond
	go func() {
		time.Sleep(50 * time.Millisecond)
		_ = os.WriteFile(file, []byte("1 10.0.0.2\n"), 0o600)
	}()
	if address, err := client.find(t.Context()); err != nil || address != "10.0.0.2" {
		t.Errorf("a name that nobody knows: got %q, %v", address, err)
	}
}

// It may have been scaled away before mpirun called it.
func TestAClientWaitsForNoWorkerThatTheJobHasNoMore(t *testing.T) {
	client, file, _ := waiting(t, "pi-worker-2")
	client.Times.ByName = 10 * time.Millisecond
	write(t, file, "workers 2\n0 10.0.0.1\n1 10.0.0.2\n")
	if _, err := client.find(t.Context()); err == nil || !strings.Contains(err.Error(), "pi-worker-2: the job has no such worker any more") {
		t.Errorf("got %v", err)
	}
}

// A worker that was made again has another address, and the client that tries the old one goes there.
func TestAClientFollowsItsHost(t *testing.T) {
	client, file, _ := waiting(t, "pi-worker-1")
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	check(t, err)
	defer listener.Close()
	client.Port = listener.Addr().(*net.TCPAddr).Port
	client.Times.Connect, client.Times.Retry, client.Times.Dial = 10*time.Second, time.Millisecond, time.Second
	write(t, file, "1 127.0.0.2\n")
	arrived := make(chan error, 1)
	go func() {
		_, err := listener.Accept()
		arrived <- err
	}()
	client.Key = testkit.Key(t)
	go func() { _, _ = client.connect(t.Context(), "127.0.0.1") }()
	check(t, <-arrived)
}

func TestOnlyTheVeryProcessIsEnded(t *testing.T) {
	for name, script := range map[string]string{"by TERM": "sleep 100", "by KILL": "trap '' TERM; while :; do sleep 0.1; done"} {
		command := exec.Command("/bin/sh", "-c", script)
		check(t, command.Start())
		started, ok := process.Read(command.Process.Pid)
		if !ok || !started.IsThere() {
			t.Fatalf("%s: it is not there", name)
		}
		End([]process.Process{{Pid: started.Pid, Started: "another"}}, 0, 0)
		if !started.IsThere() {
			t.Errorf("%s: a later process of the same id was ended", name)
		}
		ended := make(chan error, 1)
		go func() { ended <- command.Wait() }()
		End([]process.Process{started}, 10*time.Millisecond, 500*time.Millisecond)
		if err := <-ended; err == nil {
			t.Errorf("%s: it ended by itself", name)
		}
	}
}

var programs = []string{"prterun", "mpiexec.hydra"}

// TestMain runs the tests, or stands in for a program under whose name it was started.
func TestMain(m *testing.M) {
	if slices.Contains(programs, filepath.Base(os.Args[0])) {
		likePrterun()
	}
	os.Exit(m.Run())
}

// likePrterun exits where it stands at the third signal. It is no script, because a shell may lose one of several signals.
func likePrterun() {
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	fmt.Println("ready")
	for range 3 {
		<-signals
	}
	os.Exit(1)
}

func TestPrterunExitsAtOnce(t *testing.T) {
	self, err := os.Executable()
	check(t, err)
	for index, want := range []int{1, -1} {
		program := filepath.Join(t.TempDir(), programs[index])
		check(t, os.Symlink(self, program))
		command := exec.Command(program)
		output, err := command.StdoutPipe()
		check(t, err)
		check(t, command.Start())
		_, err = io.ReadFull(output, make([]byte, len("ready\n")))
		check(t, err)
		started, _ := process.Read(command.Process.Pid)
		ended := make(chan error, 1)
		go func() { ended <- command.Wait() }()
		Abort([]process.Process{started})
		if want < 0 {
			check(t, command.Process.Kill())
		}
		<-ended
		if got := command.ProcessState.ExitCode(); got != want {
			t.Errorf("%s: got %d", programs[index], got)
		}
	}
}

func TestAHostThatWasNotReachedHasNoRanks(t *testing.T) {
	for text, want := range map[string]string{"": "", "0 ended\n": "", "1 10.0.0.2\n": "pi-worker-0.pi.default.svc: it has no address"} {
		client, file, _ := waiting(t, "pi-worker-0.pi.default.svc")
		write(t, file, text)
		asked, err := client.Checkpoint(t.Context())
		if asked || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v", text, asked, err)
		}
	}
}
