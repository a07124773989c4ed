package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"mpiop/agent/internal/testkit"
)

const asStrangers = "MPIOP_AGENT_STRANGERS"

// claim announces the largest packet that x/crypto accepts, before a key exchange or after it.
var claim = []byte{0, 4, 0, 0, 4, 20, 0, 0, 0, 0, 0}

// strangers opens connections, sends what its words say on each, and holds them until its input ends.
func strangers(words []string) {
	address, source, what := words[0], words[1], words[2]
	count, _ := strconv.Atoi(words[3])
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}, Timeout: 10 * time.Second}
	held := make([]net.Conn, 0, count)
	for range count {
		raw, err := dialer.Dial("tcp", address)
		if err != nil {
			continue
		}
		switch what {
		case "a line":
			_, _ = raw.Write([]byte("SSH-2.0-x\r\n"))
		case "claims":
			_, _ = raw.Write(append([]byte("SSH-2.0-x\r\n"), claim...))
		case "claims after a key exchange":
			go claimAfterKeys(raw)
		case "logins":
			go func() { _ = logIn(raw, raw) }()
		}
		held = append(held, raw)
	}
	fmt.Println(len(held))
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func logIn(conn, raw net.Conn) error {
	_ = raw.SetDeadline(time.Now().Add(10 * time.Second))
	_, _, _, err := ssh.NewClientConn(conn, "", &ssh.ClientConfig{HostKeyCallback: ssh.InsecureIgnoreHostKey()})
	return err
}

// claimAfterKeys sends the claim in the place of the first packet after the key exchange.
func claimAfterKeys(raw net.Conn) { _ = logIn(&claimer{Conn: raw}, raw) }

type claimer struct {
	net.Conn
	hasKeys bool
}

func (c *claimer) Write(text []byte) (int, error) {
	if c.hasKeys {
		_, err := c.Conn.Write(claim)
		return len(text), err
	}
	c.hasKeys = len(text) > 5 && text[5] == 21 && binary.BigEndian.Uint32(text) < 32
	return c.Conn.Write(text)
}

// costs returns the resident memory of a process now and at most, in bytes, and the time that it ran.
func costs(t *testing.T, pid int) (now, peak int, ran time.Duration) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	check(t, err)
	number := func(field string) int {
		found := regexp.MustCompile(field + `:\s+(\d+) kB`).FindSubmatch(text)
		value, err := strconv.Atoi(string(found[1]))
		check(t, err)
		return value << 10
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	check(t, err)
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for _, field := range fields[11:13] {
		ticks, err := strconv.Atoi(field)
		check(t, err)
		ran += time.Duration(ticks) * time.Second / 100
	}
	return number("VmRSS"), number("VmHWM"), ran
}

// Strangers do not have the job's key. They come from the address of the job's own connections, as with a service mesh.
func TestMeasureWhatStrangersCost(t *testing.T) {
	testkit.Measured(t)
	const processes, each, mostMemory, mostTime = 2, 5000, 32 << 20, 250 * time.Microsecond
	file, port := keyFile(t), freePort(t)
	server := agent(t, "sshd", "--key", file, "--port", port)
	said, err := server.StderrPipe()
	check(t, err)
	check(t, server.Start())
	waitForLine(t, said, "serving")
	go func() { _, _ = io.Copy(io.Discard, said) }()
	command := func() time.Duration {
		start := time.Now()
		output, err := agent(t, "ssh", "--key", file, "--port", port, "--", "127.0.0.1", "echo here").CombinedOutput()
		if err != nil || string(output) != "here\n" {
			t.Errorf("got %q, %v", output, err)
		}
		return time.Since(start)
	}
	var alone time.Duration
	for range 5 {
		alone = max(alone, command())
	}
	limit := max(time.Second, 10*alone) // a machine that is slow, or busy otherwise
	before, _, _ := costs(t, server.Process.Pid)
	for _, what := range []string{"nothing", "a line", "claims", "claims after a key exchange", "logins"} {
		_, _, ranBefore := costs(t, server.Process.Pid)
		start := time.Now()
		var ends []func() int
		for range processes {
			ends = append(ends, startStrangers(t, "127.0.0.1:"+port, "127.0.0.1", what, strconv.Itoa(each)))
		}
		var slowest time.Duration
		for time.Since(start) < 3*time.Second {
			slowest = max(slowest, command())
		}
		held := 0
		for _, end := range ends {
			held += end()
		}
		_, peak, ran := costs(t, server.Process.Pid)
		t.Logf("%s: %d connections, %.1f MiB more by now, slowest command %v (alone %v), %.2f s of processor time in %.1f s", what, held,
			float64(peak-before)/(1<<20), slowest, alone, (ran - ranBefore).Seconds(), time.Since(start).Seconds())
		isCostly := peak-before > mostMemory || ran-ranBefore > time.Duration(held)*mostTime
		if held < processes*each*9/10 || slowest > limit || isCostly {
			t.Errorf("%s: %d connections cost %d bytes and %v; a command took %v", what, held, peak-before, ran-ranBefore, slowest)
		}
	}
	check(t, server.Process.Signal(syscall.SIGTERM))
	_ = server.Wait()
}

// startStrangers returns how to end them; that returns how many connections they made.
func startStrangers(t *testing.T, words ...string) (end func() int) {
	t.Helper()
	self, err := os.Executable()
	check(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	command := exec.CommandContext(ctx, self, words...)
	command.Env = append(os.Environ(), asStrangers+"=1")
	hold, err := command.StdinPipe()
	check(t, err)
	output, err := command.StdoutPipe()
	check(t, err)
	check(t, command.Start())
	return func() int {
		defer cancel()
		line, err := bufio.NewReader(output).ReadString('\n')
		check(t, err)
		held, err := strconv.Atoi(strings.TrimSpace(line))
		check(t, err)
		_ = hold.Close()
		_ = command.Wait()
		return held
	}
}
