package client

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// Like prterun: the third signal makes it exit where it stands, and its exit code is another one when it ends in order. It starts no program
// while it waits, because dash loses a signal that arrives at that moment (vfork).
const likePrterun = `#!/bin/sh
count() { signals=$((signals + 1)); [ $signals -lt 3 ] || exit 1; }
trap count TERM INT HUP
sleep 5 >/dev/null &
echo ready
while :; do wait; done
`

func TestPrterunExitsAtOnce(t *testing.T) {
	for name, want := range map[string]int{"prterun": 1, "mpiexec.hydra": -1} {
		script := filepath.Join(t.TempDir(), name)
		check(t, os.WriteFile(script, []byte(likePrterun), 0o700))
		command := exec.Command(script)
		output, err := command.StdoutPipe()
		check(t, err)
		check(t, command.Start())
		_, err = io.ReadFull(output, make([]byte, len("ready\n")))
		check(t, err)
		started, _ := process.Read(command.Process.Pid)
		Abort([]process.Process{started})
		if want < 0 {
			check(t, command.Process.Kill())
		}
		_ = command.Wait()
		if got := command.ProcessState.ExitCode(); got != want {
			t.Errorf("%s: got %d", name, got)
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
