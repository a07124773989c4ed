package server_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"mpiop/agent/internal/client"
	"mpiop/agent/internal/testkit"
	"mpiop/agent/internal/wire"
)

func TestHowACommandEnds(t *testing.T) {
	place := serve(t, wire.Interval)
	for command, want := range map[string]int{
		"true": 0, "exit 3": 3, "exit 255": 255, "kill -TERM $$": 143, "kill -KILL $$": 137, "kill -SEGV $$": 139, "kill -34 $$": 162,
		"no-such-program": 127,
	} {
		if got, _, _ := place.run(t, command, ""); got != want {
			t.Errorf("%q: got %d, want %d", command, got, want)
		}
	}
}

func TestStreamsPassWhole(t *testing.T) {
	place := serve(t, wire.Interval)
	code, output, errors := place.run(t, "cat; echo apart >&2; printf last", "first\n")
	if code != 0 || output != "first\nlast" || errors != "apart\n" {
		t.Errorf("got %d %q %q", code, output, errors)
	}
}

func TestManyBytesInBothDirections(t *testing.T) {
	place := serve(t, wire.Interval)
	const size = 64 << 20
	sent, received := sha256.New(), sha256.New()
	calling := place.client("cat")
	calling.Input = io.TeeReader(io.LimitReader(noise{}, size), sent)
	calling.Output = received
	code, err := calling.Run()
	check(t, err)
	if code != 0 || string(sent.Sum(nil)) != string(received.Sum(nil)) {
		t.Errorf("exit code %d, or the bytes are others", code)
	}
}

// noise is the same everywhere, and never twice the same.
type noise struct{}

var counter byte

func (noise) Read(buffer []byte) (int, error) {
	for at := range buffer {
		counter = counter*137 + 29
		buffer[at] = counter ^ byte(at>>8)
	}
	return len(buffer), nil
}

// A rank sees what its container has: variables, folder, mask and limits.
func TestACommandHasItsContainersSurroundings(t *testing.T) {
	place := serve(t, wire.Interval)
	t.Setenv("OF_THE_CONTAINER", "a value")
	folder := t.TempDir()
	t.Chdir(folder)
	defer syscall.Umask(syscall.Umask(0o027))
	_, output, _ := place.run(t, "echo $OF_THE_CONTAINER; pwd; umask", "")
	if output != "a value\n"+folder+"\n0027\n" {
		t.Errorf("got %q", output)
	}
	// Go raises its own limit of open files to the hard one; a command must not see that, nor our descriptors.
	for _, command := range []string{"ulimit -Sn", "ls /proc/self/fd"} {
		if _, got, _ := place.run(t, command, ""); got != direct(t, command) {
			t.Errorf("%s: got %q, want %q", command, got, direct(t, command))
		}
	}
	_, flags, _ := place.run(t, "grep -h ^flags /proc/self/fdinfo/0 /proc/self/fdinfo/1 /proc/self/fdinfo/2", "")
	for _, line := range strings.Split(strings.TrimSpace(flags), "\n") {
		octal, err := strconv.ParseUint(strings.Fields(line)[1], 8, 64)
		check(t, err)
		if octal&syscall.O_NONBLOCK != 0 {
			t.Errorf("a stream does not block: %s", line)
		}
	}
}

func TestVariablesOfTheClient(t *testing.T) {
	place := serve(t, wire.Interval)
	t.Setenv("BOTH", "the container's")
	connection, err := place.dial(t, place.job)
	check(t, err)
	defer connection.Close()
	running, err := connection.NewSession()
	check(t, err)
	check(t, running.Setenv("BOTH", "the client's"))
	for _, name := range []string{"", "A=B", "A\x00"} {
		if running.Setenv(name, "x") == nil {
			t.Errorf("%q was taken as a name", name)
		}
	}
	output, err := running.Output("env | grep -a ^BOTH")
	check(t, err)
	if string(output) != "BOTH=the client's\n" {
		t.Errorf("got %q", output)
	}
}

func TestSignalsArrive(t *testing.T) {
	place := serve(t, wire.Interval)
	signals := make(chan os.Signal, 1)
	ready := &sentinel{word: "ready", signals: signals, send: syscall.SIGUSR1}
	calling := place.client(`trap 'echo caught; exit 9' USR1; echo ready; while :; do sleep 0.05; done`)
	calling.Signals, calling.Output = signals, ready
	code, err := calling.Run()
	check(t, err)
	if code != 9 || !strings.Contains(ready.text, "caught") {
		t.Errorf("got %d %q", code, ready.text)
	}
}

// sentinel sends a signal when it reads a word.
type sentinel struct {
	word, text string
	signals    chan<- os.Signal
	send       os.Signal
}

func (s *sentinel) Write(text []byte) (int, error) {
	s.text += string(text)
	if strings.Contains(string(text), s.word) {
		s.signals <- s.send
	}
	return len(text), nil
}

func TestACommandThatIgnoresTERMEndsWithItsClient(t *testing.T) {
	place := serve(t, wire.Interval)
	signals := make(chan os.Signal, 1)
	calling := place.client(`trap '' TERM; echo ready; sleep 4711.25 & wait; sleep 4711.25`)
	calling.Signals, calling.Output = signals, &sentinel{word: "ready", signals: signals, send: syscall.SIGTERM}
	calling.Times.End = 100 * time.Millisecond
	code, err := calling.Run()
	var lost *client.LostError
	if code != wire.Lost || !errors.As(err, &lost) {
		t.Errorf("got %d, %v", code, err)
	}
	eventually(t, "all processes have ended", func() bool { return len(running("4711.25")) == 0 })
}

// full is a disk on which no space is left.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestOutputThatCannotBeWritten(t *testing.T) {
	place := serve(t, wire.Interval)
	const noSpace = "127.0.0.1 on node node-7: its output cannot be written: no space left on device"
	for command, want := range map[string]string{
		"head -c 10000000 /dev/zero":             "255 " + noSpace,
		"head -c 10000000 /dev/zero >&2; exit 7": "7 " + noSpace,
		"exit 0":                                 "0 <nil>",
		"exit 3":                                 "3 <nil>",
	} {
		calling := place.client(command)
		calling.Output, calling.Error = full{}, full{}
		code, err := runWithin(t, calling, time.Minute)
		if got := fmt.Sprint(code, " ", err); got != want {
			t.Errorf("%s: got %s", command, got)
		}
	}
}

// standstill reads nothing until the end of the test.
type standstill struct{ end <-chan struct{} }

func (s standstill) Write(text []byte) (int, error) {
	<-s.end
	return len(text), nil
}

func TestASignalEndsAClientWhoseReaderStandsStill(t *testing.T) {
	place := serve(t, wire.Interval)
	for _, command := range []string{"echo done", "head -c 10000000 /dev/zero"} {
		end := make(chan struct{})
		signals := make(chan os.Signal, 1)
		calling := place.client(command)
		calling.Output, calling.Signals, calling.Times.End = standstill{end}, signals, 100*time.Millisecond
		time.AfterFunc(time.Second, func() { signals <- syscall.SIGTERM })
		if code, err := runWithin(t, calling, 30*time.Second); code != wire.Lost || err == nil {
			t.Errorf("%s: got %d, %v", command, code, err)
		}
		close(end)
	}
}

func runWithin(t *testing.T, calling *client.Client, limit time.Duration) (code int, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		code, err = calling.Run()
		close(done)
	}()
	select {
	case <-done:
		return code, err
	case <-time.After(limit):
		return 0, errors.New("it waits for ever")
	}
}

func TestMeasureAThousandConnectionsAtOnce(t *testing.T) {
	testkit.Measured(t)
	place := serve(t, time.Minute) // a machine that is busy is silent for long
	const count = 1000
	release, hold := io.Pipe()
	var started, ended sync.WaitGroup
	begin := time.Now()
	for range count {
		started.Add(1)
		ended.Go(func() {
			calling := place.client("echo ready; cat")
			calling.Times.Connect, calling.Times.Interval = time.Minute, time.Minute
			calling.Input = gate{release}
			output := &once{do: started.Done}
			defer output.Do(started.Done) // a client that fails must not hold up the others
			calling.Output = output
			if code, err := calling.Run(); code != 0 || err != nil {
				t.Errorf("got %d, %v", code, err)
			}
		})
	}
	started.Wait()
	t.Logf("%d commands run after %v", count, time.Since(begin))
	check(t, hold.Close())
	ended.Wait()
}

// gate has nothing to read, and ends when all others do.
type gate struct{ release io.Reader }

func (g gate) Read([]byte) (int, error) { return g.release.Read(nil) }

type once struct {
	sync.Once
	do func()
}

func (o *once) Write(text []byte) (int, error) {
	o.Do(o.do)
	return len(text), nil
}

func TestMeasureThatOutputDoesNotStall(t *testing.T) {
	testkit.Measured(t)
	place := serve(t, wire.Interval)
	const megabytes = 1000
	counted := &count{}
	calling := place.client("head -c 1000000000 /dev/zero")
	calling.Output = counted
	begin := time.Now()
	code, err := calling.Run()
	check(t, err)
	speed := megabytes / time.Since(begin).Seconds()
	t.Logf("%.0f MB/s", speed)
	if code != 0 || counted.bytes != megabytes*1_000_000 || speed < 20 {
		t.Errorf("exit code %d, %d bytes, %.0f MB/s", code, counted.bytes, speed)
	}
}

type count struct{ bytes int }

func (c *count) Write(text []byte) (int, error) {
	c.bytes += len(text)
	return len(text), nil
}

// Image mode's contract: an sshd whose host key is the job's key.
func TestAClientTakesTheHostThatHasTheJobsKey(t *testing.T) {
	place := serve(t, wire.Interval)
	for name, row := range map[string]struct {
		host    ssh.Signer
		isTaken bool
	}{
		"our own":       {place.job.Host, true},
		"an image's":    {place.job.Member, true},
		"another job's": {testkit.Key(t).Host, false},
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		check(t, err)
		config := &ssh.ServerConfig{NoClientAuth: true}
		config.AddHostKey(row.host)
		accepted := make(chan bool, 100)
		go func() {
			for {
				raw, err := listener.Accept()
				if err != nil {
					return
				}
				_, _, _, err = ssh.NewServerConn(raw, config)
				accepted <- err == nil
				_ = raw.Close()
			}
		}()
		calling := place.client("true")
		calling.Port = listener.Addr().(*net.TCPAddr).Port
		calling.Times.Connect = 10 * time.Millisecond
		_, err = calling.Run()
		if <-accepted != row.isTaken || err == nil || strings.Contains(err.Error(), "not of this job") == row.isTaken {
			t.Errorf("%s: got %v", name, err)
		}
		_ = listener.Close()
	}
}
