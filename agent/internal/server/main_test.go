package server_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"mpiop/agent/internal/arguments"
	"mpiop/agent/internal/children"
	"mpiop/agent/internal/client"
	"mpiop/agent/internal/hosts"
	"mpiop/agent/internal/key"
	"mpiop/agent/internal/server"
	"mpiop/agent/internal/session"
	"mpiop/agent/internal/testkit"
)

// all collects every process that a test starts: wait4(2) has one answer for each.
var all *children.Children

// The test's program is also the session.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == session.Word {
		if err := session.Main(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	all = children.New()
	os.Exit(m.Run())
}

// direct returns what the command says that is run here, not through a server.
func direct(t testing.TB, command string) string {
	t.Helper()
	output, said, err := os.Pipe()
	check(t, err)
	_, _, err = all.Start("/bin/sh", []string{"sh", "-c", command}, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, said.Fd(), 2},
	})
	check(t, err)
	_ = said.Close()
	text, err := io.ReadAll(output)
	check(t, err)
	return string(text)
}

var check = testkit.Check

// place is a server and what is needed to reach it.
type place struct {
	job      key.Key
	serving  *server.Server
	listener net.Listener
	host     string
	port     int
}

func serve(t testing.TB, interval time.Duration) *place {
	t.Helper()
	return serveWith(t, func(p *place) { p.serving.Interval = interval })
}

func serveWith(t testing.TB, set func(*place)) *place {
	t.Helper()
	self, err := os.Executable()
	check(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	made := &place{job: testkit.Key(t), listener: listener, host: "127.0.0.1", port: listener.Addr().(*net.TCPAddr).Port}
	made.serving = server.New(made.job, all, server.LimitsFor(0, 0))
	made.serving.Program, made.serving.Words = self, []string{self, session.Word}
	made.serving.Node = "node-7"
	made.serving.Say = t.Logf
	set(made)
	ended := make(chan error, 1)
	go func() { ended <- made.serving.Serve(listener) }()
	t.Cleanup(func() {
		_ = listener.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		made.serving.TerminateAll()
	})
	return made
}

func (p *place) client(command string) *client.Client {
	times := client.DefaultTimes()
	times.Connect, times.Retry = 5*time.Second, 10*time.Millisecond
	return &client.Client{
		Arguments: arguments.Arguments{Host: p.host, Command: command},
		Job:       hosts.Job{Name: "pi", Namespace: "default"},
		Key:       p.job,
		Port:      p.port,
		Say:       func(string, ...any) {},
		Times:     times,
		Output:    io.Discard,
		Error:     io.Discard,
	}
}

// run returns what the command said and how it ended.
func (p *place) run(t testing.TB, command, input string) (code int, output, errors string) {
	t.Helper()
	var out, err bytes.Buffer
	calling := p.client(command)
	calling.Input, calling.Output, calling.Error = strings.NewReader(input), &out, &err
	code, failed := calling.Run()
	check(t, failed)
	return code, out.String(), err.String()
}

// dial logs in as a client of any kind.
func (p *place) dial(t testing.TB, member key.Key) (*ssh.Client, error) {
	t.Helper()
	return ssh.Dial("tcp", p.listener.Addr().String(), &ssh.ClientConfig{
		Auth:            []ssh.AuthMethod{ssh.PublicKeys(member.Member)},
		HostKeyCallback: ssh.FixedHostKey(p.job.Host.PublicKey()),
	})
}

var eventually = testkit.Eventually

// running returns the processes that have the word on their command line.
func running(word string) []int {
	var found []int
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		text, err := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
		if err == nil && bytes.Contains(text, []byte(word)) {
			found = append(found, pid)
		}
	}
	return found
}
