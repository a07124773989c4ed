package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mpiop/agent/internal/client"
	"mpiop/agent/internal/hosts"
	"mpiop/agent/internal/process"
	"mpiop/agent/internal/testkit"
)

const asAgent = "MPIOP_AGENT_TEST"

// The test's program is the agent too.
func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		os.Exit(run(os.Args[1:]))
	}
	if os.Getenv(asStrangers) != "" {
		strangers(os.Args[1:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var check = testkit.Check

func agent(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	check(t, err)
	command := exec.CommandContext(t.Context(), self, words...)
	command.Env = append(os.Environ(), asAgent+"=1")
	return command
}

func keyFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	check(t, os.WriteFile(file, testkit.KeyText(t), 0o600))
	return file
}

// freePort returns a port on which nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

func exitCode(err error) int {
	var exited *exec.ExitError
	if errors.As(err, &exited) {
		return exited.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

func TestInstall(t *testing.T) {
	folder := t.TempDir()
	for range 2 { // an init container may be started again
		check(t, agent(t, "install", folder).Run())
	}
	about, err := os.Stat(filepath.Join(folder, "mpiop-agent"))
	check(t, err)
	if about.Mode().Perm() != 0o555 {
		t.Errorf("mode %v", about.Mode())
	}
	left, err := os.ReadDir(folder)
	check(t, err)
	if len(left) != 1 {
		t.Errorf("left %v", left)
	}
	for _, words := range [][]string{{"install"}, {"install", "/no/such/folder"}, {"unknown"}, {}} {
		if err := agent(t, words...).Run(); exitCode(err) < 1 {
			t.Errorf("%q: got %v", words, err)
		}
	}
}

// Both programs as a Pod runs them: the client waits for a server that starts later.
func TestAClientAndAServer(t *testing.T) {
	file, port, mark := keyFile(t), freePort(t), filepath.Join(t.TempDir(), "message")
	check(t, os.WriteFile(mark, nil, 0o600))
	flags := []string{"ssh", "--job", "pi", "--namespace", "default", "--key", file, "--port", port, "--message", mark, "--mark", "called"}
	client := agent(t, append(flags, "--", "-x", "127.0.0.1", "echo", "$GREETING;", "exit", "7")...)
	var output bytes.Buffer
	client.Stdout = &output
	check(t, client.Start())
	time.Sleep(300 * time.Millisecond)
	server := agent(t, "sshd", "--key", file, "--port", port)
	server.Env = append(server.Env, "GREETING=hello")
	check(t, server.Start())
	if err := client.Wait(); exitCode(err) != 7 || output.String() != "hello\n" {
		t.Errorf("got %v, %q", err, output.String())
	}
	if text, err := os.ReadFile(mark); err != nil || string(text) != "called\n" {
		t.Errorf("the message is %q, %v", text, err)
	}
	another := agent(t, "sshd", "--key", file, "--port", port)
	if said, err := another.CombinedOutput(); exitCode(err) != failed || !strings.Contains(string(said), "hostNetwork") {
		t.Errorf("a second server: %v, %s", err, said)
	}
	check(t, server.Process.Signal(syscall.SIGTERM))
	if err := server.Wait(); exitCode(err) != 143 {
		t.Errorf("the server ended with %v", err)
	}
}

func TestAServerAndAClientWithoutAKey(t *testing.T) {
	for _, words := range [][]string{
		{"sshd", "--key", "/no/such/file"},
		{"sshd", "--unknown"},
		{"ssh", "--key", "/no/such/file", "--", "127.0.0.1", "true"},
		{"ssh", "--unknown"},
		{"ssh", "--", "127.0.0.1"},
	} {
		if err := agent(t, words...).Run(); exitCode(err) < 1 {
			t.Errorf("%q: got %v", words, err)
		}
	}
}

func TestTheLauncherReachesItselfWithoutAServer(t *testing.T) {
	output, err := agent(t, "ssh", "--job", "pi", "--namespace", "default", "--addresses", "/no/such/file", "--", "pi-launcher.pi.default.svc",
		"echo", "here").Output()
	if err != nil || string(output) != "here\n" {
		t.Errorf("got %q, %v", output, err)
	}
}

// Hydra's mpiexec does not notice that its ssh has ended.
func TestMpirunEndsWithItsHost(t *testing.T) {
	folder, file := t.TempDir(), keyFile(t)
	addresses := filepath.Join(folder, "addresses")
	check(t, os.WriteFile(addresses, []byte("0 ended\n"), 0o600))
	self, err := os.Executable()
	check(t, err)
	call := asAgent + "=1 " + self + " ssh --job pi --namespace default --key " + file + " --addresses " + addresses + " -- pi-worker-0 true"
	for name, isEnded := range map[string]bool{"mpiexec.hydra": true, "a-users-script": false} {
		script := filepath.Join(folder, name)
		check(t, os.WriteFile(script, []byte("#!/bin/sh\n"+call+"\necho \"ssh: $?\"\nsleep 6\necho survived\n"), 0o700))
		command := exec.CommandContext(t.Context(), script)
		var output, said bytes.Buffer
		command.Stdout, command.Stderr = &output, &said
		command.WaitDelay = time.Millisecond
		err := command.Run()
		if !strings.Contains(output.String(), "ssh: 255\n") || !strings.Contains(said.String(), "pi-worker-0: its Pod has ended") {
			t.Errorf("%s: %v: %s%s", name, err, output.String(), said.String())
		}
		if strings.Contains(output.String(), "survived") == isEnded {
			t.Errorf("%s: %v: %s", name, err, output.String())
		}
	}
}

// sleeping starts a child that sleeps, and returns what /proc has of it and of us.
func sleeping(t *testing.T) (child *exec.Cmd, about, ours process.Process) {
	t.Helper()
	child = exec.CommandContext(t.Context(), "sleep", "60")
	check(t, child.Start())
	about, ok := process.Read(child.Process.Pid)
	ours, found := process.Read(os.Getpid())
	if !ok || !found {
		t.Fatal("there is no /proc")
	}
	return child, about, ours
}

// A zombie is a process whose parent does not have its exit code yet.
func TestAConnectionIsHeldUntilTheParentHasTheExitCode(t *testing.T) {
	ended, about, ours := sleeping(t)
	reader, writer, err := os.Pipe()
	check(t, err)
	defer reader.Close()
	holder := agent(t, holdWord, about.String(), ours.String())
	holder.ExtraFiles = []*os.File{writer}
	check(t, holder.Start())
	check(t, writer.Close())
	check(t, ended.Process.Kill())
	check(t, reader.SetReadDeadline(time.Now().Add(300*time.Millisecond)))
	if _, err := reader.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("it is not held: %v", err)
	}
	_ = ended.Wait()
	check(t, reader.SetReadDeadline(time.Now().Add(20*time.Second)))
	if _, err := reader.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("it is held: %v", err)
	}
	check(t, holder.Wait())
}

func TestNoConnectionIsHeldForAParentThatHasEnded(t *testing.T) {
	parent, about, ours := sleeping(t)
	check(t, parent.Process.Kill()) // a zombie from now on
	check(t, agent(t, holdWord, ours.String(), about.String()).Run())
	_ = parent.Wait()
	if err := agent(t, holdWord, "neither").Run(); err == nil {
		t.Error("words that name no process are accepted")
	}
}

// When a Pod ends, its ranks may save their work before they get TERM: asked by the launcher, and by the worker's own end.
func TestCheckpoint(t *testing.T) {
	file, port, folder := keyFile(t), freePort(t), t.TempDir()
	hostfile, saved := filepath.Join(folder, "hostfile"), filepath.Join(folder, "saved")
	check(t, os.WriteFile(hostfile, []byte("127.0.0.1 slots=1\n"), 0o600))
	flags := []string{"--job", "pi", "--namespace", "default", "--key", file, "--port", port}
	server := agent(t, "sshd", "--key", file, "--port", port, "--checkpoint-signal", "SIGUSR1", "--checkpoint-grace", "1h")
	check(t, server.Start())
	// The trap of a shell waits for its child, and the signal of the worker's end would be a second one.
	rank := "trap 'echo saved >>" + saved + "; exit 5' USR1; echo ready >" + saved + "; while :; do sleep 0.05; done"
	client := agent(t, append(append([]string{"ssh"}, flags...), "--", "127.0.0.1", rank)...)
	check(t, client.Start())
	testkit.Eventually(t, "it runs", func() bool { _, err := os.Stat(saved); return err == nil })
	asking := append(append([]string{"checkpoint"}, flags...), "--hosts", hostfile, "--signal", "SIGUSR1", "--grace", "100ms")
	if said, err := agent(t, asking...).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
	check(t, server.Process.Signal(syscall.SIGTERM))
	if err := client.Wait(); exitCode(err) != 5 {
		t.Errorf("the rank ended with %v", err)
	}
	if err := server.Wait(); exitCode(err) != 143 {
		t.Errorf("the server ended with %v", err)
	}
	if text, err := os.ReadFile(saved); err != nil || string(text) != "ready\nsaved\n" {
		t.Errorf("got %q, %v", text, err)
	}
	checkMisused(t, hostfile)
}

func checkMisused(t *testing.T, hostfile string) {
	t.Helper()
	for _, words := range [][]string{{"--unknown"}, {"--signal", "SIGUSR1", "--hosts", "/no/such/file"}, {"--signal", "FOO", "--hosts", hostfile},
		{"--signal", "SIGUSR1", "--hosts", hostfile, "--key", "/no/such/file"}} {
		if err := agent(t, append([]string{"checkpoint"}, words...)...).Run(); exitCode(err) < 1 {
			t.Errorf("%q: got %v", words, err)
		}
	}
}

// A suspend deletes all Pods at once, and a worker gets its TERM before the launcher's hook asks it.
func TestTheLauncherWaitsForAWorkerThatEndsAlready(t *testing.T) {
	file, port, folder := keyFile(t), freePort(t), t.TempDir()
	hostfile, saved := filepath.Join(folder, "hostfile"), filepath.Join(folder, "saved")
	check(t, os.WriteFile(hostfile, []byte("127.0.0.1 slots=1\n"), 0o600))
	flags := []string{"--job", "pi", "--namespace", "default", "--key", file, "--port", port}
	server := agent(t, "sshd", "--key", file, "--port", port, "--checkpoint-signal", "SIGUSR1", "--checkpoint-grace", "1h")
	said, err := server.StderrPipe()
	check(t, err)
	check(t, server.Start())
	rank := "trap 'sleep 2; echo saved >>" + saved + "; exit 5' USR1; echo ready >" + saved + "; while :; do sleep 0.05; done"
	ended := likeMpirun(t, folder, append(append([]string{"ssh"}, flags...), "--", "127.0.0.1", rank)...)
	testkit.Eventually(t, "it runs", func() bool { _, err := os.Stat(saved); return err == nil })
	check(t, server.Process.Signal(syscall.SIGTERM))
	waitForLine(t, said, "ranks got SIGUSR1")
	asking := append(append([]string{"checkpoint"}, flags...), "--hosts", hostfile, "--signal", "SIGUSR1", "--grace", "20s")
	output, err := agent(t, asking...).CombinedOutput()
	check(t, err)
	if strings.Contains(string(output), "refused") {
		t.Errorf("the worker does not listen any more: %s", output)
	}
	if text, err := os.ReadFile(saved); err != nil || string(text) != "ready\nsaved\n" {
		t.Errorf("the launcher did not wait: %q, %v, %s", text, err, output)
	}
	if err := <-ended; exitCode(err) != 5 {
		t.Errorf("the rank ended with %v", err)
	}
	if err := server.Wait(); exitCode(err) != 143 {
		t.Errorf("the server ended with %v", err)
	}
}

// likeMpirun runs the agent below a program that has the name of mpirun.
func likeMpirun(t *testing.T, folder string, words ...string) <-chan error {
	t.Helper()
	self, err := os.Executable()
	check(t, err)
	script := filepath.Join(folder, "mpirun")
	check(t, os.WriteFile(script, []byte("#!/bin/sh\n\"$@\"\nexit $?\n"), 0o700))
	command := exec.CommandContext(t.Context(), script, append([]string{self}, words...)...)
	command.Env = append(os.Environ(), asAgent+"=1")
	check(t, command.Start())
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	return ended
}

func waitForLine(t *testing.T, said io.Reader, words string) {
	t.Helper()
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if strings.Contains(lines.Text(), words) {
			return
		}
	}
	t.Fatalf("it never said %q", words)
}

// A worker that cannot be asked may have ended while its ranks save their work.
func TestAHostThatCannotBeAskedMaySaveItsWork(t *testing.T) {
	port, err := strconv.Atoi(freePort(t))
	check(t, err)
	addresses := filepath.Join(t.TempDir(), "addresses")
	for name, row := range map[string]struct {
		host, addresses string
		asked           int64
	}{
		"nobody listens":       {"127.0.0.1", "", 1},
		"its Pod terminates":   {"pi-worker-0", "1 127.0.0.1\n", 1},
		"its Pod has ended":    {"pi-worker-0", "0 ended\n", 0},
		"mpirun has not begun": {"pi-worker-0", "", 0},
		"its Pod is gone":      {"pi-worker-0", "0 127.0.0.1\n", 1},
	} {
		check(t, os.WriteFile(addresses, []byte(row.addresses), 0o600))
		asking := client.Client{Job: hosts.Job{Name: "pi", Namespace: "default"}, Key: testkit.Key(t), Port: port, Times: client.DefaultTimes(),
			Addresses: hosts.Addresses{Path: addresses}}
		if asked := askAll(asking, []string{row.host}, syscall.SIGUSR1); asked != row.asked {
			t.Errorf("%s: got %d", name, asked)
		}
	}
}

// The server's host, or the network, stands still.
func TestTheSilenceAfterWhichAHostIsLost(t *testing.T) {
	file, port := keyFile(t), freePort(t)
	server := agent(t, "sshd", "--key", file, "--port", port, "--silence", "1h")
	check(t, server.Start())
	client := agent(t, "ssh", "--key", file, "--port", port, "--", "127.0.0.1", "echo here; sleep 4725.25")
	client.Env = append(client.Env, "MPIOP_SILENCE=3s")
	var said bytes.Buffer
	client.Stderr = &said
	output, err := client.StdoutPipe()
	check(t, err)
	check(t, client.Start())
	waitForLine(t, output, "here")
	check(t, server.Process.Signal(syscall.SIGSTOP))
	if err := client.Wait(); exitCode(err) != 255 || !strings.Contains(said.String(), "no answer from 127.0.0.1 for 3s") {
		t.Errorf("got %v, %s", err, said.String())
	}
	check(t, server.Process.Signal(syscall.SIGCONT))
	check(t, server.Process.Signal(syscall.SIGTERM))
	_ = server.Wait()
	for _, silence := range []string{"15", "1s", "-15s", "long"} {
		for _, words := range [][]string{{"sshd", "--key", file}, {"ssh", "--key", file, "--", "127.0.0.1", "true"}} {
			wrong := agent(t, append([]string{words[0], "--silence", silence}, words[1:]...)...)
			inherited := agent(t, words...)
			inherited.Env = append(inherited.Env, "MPIOP_SILENCE="+silence)
			for _, command := range []*exec.Cmd{wrong, inherited} {
				if said, err := command.CombinedOutput(); exitCode(err) < 1 || !strings.Contains(string(said), "at least 3s") {
					t.Errorf("%q: got %v, %s", command.Args, err, said)
				}
			}
		}
	}
}
