package server_test

import (
	"fmt"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"mpiop/agent/internal/testkit"
	"mpiop/agent/internal/wire"
)

// What a session would start after the TERM of its Pod would get none.
func TestASessionThatWasAcceptedBeforeTERMStartsNothingAfterIt(t *testing.T) {
	place := serve(t, wire.Interval)
	connection, err := place.dial(t, place.job)
	check(t, err)
	defer connection.Close()
	channel, requests, err := connection.OpenChannel("session", nil)
	check(t, err)
	go ssh.DiscardRequests(requests)
	place.serving.TerminateAll()
	if done, err := channel.SendRequest("exec", true, ssh.Marshal(wire.Exec{Command: "true"})); err != nil || done {
		t.Errorf("got %v, %v", done, err)
	}
}

// A subreaper that is stopped reads no orders, and its pipe becomes full.
func TestASessionThatReadsNoOrdersHoldsUpNobody(t *testing.T) {
	place := serve(t, wire.Interval)
	connection, err := place.dial(t, place.job)
	check(t, err)
	defer connection.Close()
	stopped, err := connection.NewSession()
	check(t, err)
	check(t, stopped.Start("kill -STOP $PPID; sleep 4723.25"))
	eventually(t, "it runs", func() bool { return len(running("4723.25")) > 1 })
	for range 70_000 { // a pipe holds 65,536 bytes
		check(t, stopped.Signal(ssh.SIGUSR1))
	}
	result := make(chan int, 1)
	go func() {
		code, _ := place.client("sleep 4724.25; exit 5").Run()
		result <- code
	}()
	eventually(t, "another one runs", func() bool { return len(running("4724.25")) > 0 })
	go place.serving.TerminateAll()
	select {
	case code := <-result:
		if code != 143 {
			t.Errorf("got %d", code)
		}
	case <-time.After(10 * time.Second):
		t.Error("it did not get its TERM")
	}
	for _, pid := range running("4723.25") {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// log keeps what a server says.
type log struct {
	mutex sync.Mutex
	lines []string
}

func (l *log) say(format string, values ...any) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, values...))
}

func (l *log) all() []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return append([]string{}, l.lines...)
}

func TestFailedLoginsAreReportedTogether(t *testing.T) {
	said := &log{}
	place := serveWith(t, func(p *place) { p.serving.Say, p.serving.BetweenReports = said.say, 500*time.Millisecond })
	probe, err := net.Dial("tcp", place.listener.Addr().String())
	check(t, err)
	check(t, probe.Close())
	place.run(t, "true", "")
	time.Sleep(700 * time.Millisecond)
	if lines := said.all(); len(lines) > 0 {
		t.Errorf("a probe and a member: got %q", lines)
	}
	for range 3 {
		if _, err := place.dial(t, testkit.Key(t)); err == nil {
			t.Error("another key got in")
		}
	}
	raw, err := net.Dial("tcp", place.listener.Addr().String())
	check(t, err)
	_, _ = raw.Write([]byte("GET / HTTP/1.1\r\n"))
	_ = raw.Close()
	// One line if they fall into one interval, else two.
	count := func() (failed, withAnotherKey int) {
		for _, line := range said.all() {
			var all, others, most int
			if _, err := fmt.Sscanf(line, "failed logins: %d, of which %d offered another key; %d came from 127.0.0.1", &all, &others, &most); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			failed, withAnotherKey = failed+all, withAnotherKey+others
		}
		return failed, withAnotherKey
	}
	eventually(t, "all are reported", func() bool { failed, _ := count(); return failed == 4 })
	if _, withAnotherKey := count(); withAnotherKey != 3 || len(said.all()) > 2 {
		t.Errorf("got %q", said.all())
	}
}
