package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

const rest = " S 1 5 4 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4711 0"

func TestLinesOfTheKernel(t *testing.T) {
	for line, name := range map[string]string{"7 (sh)" + rest: "sh", "7 (a) b)" + rest: "a) b", "7 (evil) S 1)" + rest: "evil) S 1"} {
		if got, ok := parse(line); !ok || got != (Process{Pid: 7, Parent: 1, Session: 4, Name: name, Started: "4711"}) {
			t.Errorf("%q: got %v, %v", line, got, ok)
		}
	}
	for _, line := range []string{"", "7 (sh)", "7 (sh) S", "(sh)" + rest, "x (sh)" + rest, "7 )sh(" + rest} {
		if got, ok := parse(line); ok {
			t.Errorf("%q: got %v", line, got)
		}
	}
}

func TestOursIsThere(t *testing.T) {
	ours, ok := Read(os.Getpid())
	if !ok || ours.Parent != os.Getppid() || !ours.IsThere() {
		t.Errorf("got %v", ours)
	}
	if later := (Process{Pid: ours.Pid, Started: "another"}); later.IsThere() {
		t.Error("a later process of the same id was taken for it")
	}
	again, ok := Parse(ours.String())
	if !ok || !again.IsThere() {
		t.Errorf("%v became %v", ours, again)
	}
	if !slices.ContainsFunc(Below(os.Getppid(), All()), func(each Process) bool { return each.Pid == ours.Pid }) {
		t.Error("it was not found below its parent")
	}
	for _, text := range []string{"", "x:2", "7", "-5:2"} {
		if got, ok := Parse(text); ok {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func TestProgramsOfLibraries(t *testing.T) {
	for name, want := range map[string]bool{
		"mpirun": true, "mpiexec.hydra": true, "orted": true, "prterun": true, "hydra_bstrap_pr": true, "sh": false, "python3": false,
	} {
		if (Process{Name: name}).IsStarter() != want {
			t.Errorf("%s: got %v", name, !want)
		}
	}
}

func TestAllBelowAProcess(t *testing.T) {
	all := []Process{{Pid: 2, Parent: 1}, {Pid: 3, Parent: 2}, {Pid: 4, Parent: 3}, {Pid: 5, Parent: 9}, {Pid: 6, Parent: 1}, {Pid: 8, Parent: 8}}
	if got := ids(Below(1, all)); !slices.Equal(got, []int{2, 3, 4, 6}) {
		t.Errorf("got %v", got)
	}
}

func TestRanksAreNotStarters(t *testing.T) {
	all := []Process{
		{Pid: 2, Parent: 1, Name: "sh"}, {Pid: 3, Parent: 2, Name: "prted"}, {Pid: 4, Parent: 3, Name: "sh"}, {Pid: 5, Parent: 4, Name: "pi"},
		{Pid: 6, Parent: 1, Name: "orphan"}, {Pid: 7, Parent: 2, Name: "beside"},
		{Pid: 8, Parent: 3, Name: "mpiop-agent"},
	}
	if got := ids(WithoutStarters(all)); !slices.Equal(got, []int{4, 5, 6, 7}) {
		t.Errorf("got %v", got)
	}
}

func ids(all []Process) []int {
	var found []int
	for _, each := range all {
		found = append(found, each.Pid)
	}
	slices.Sort(found)
	return found
}

func FuzzParse(f *testing.F) {
	f.Add("7 (sh)" + rest)
	f.Fuzz(func(t *testing.T, name string) {
		got, ok := parse("7 (" + name + ")" + rest)
		if !ok || got != (Process{Pid: 7, Parent: 1, Session: 4, Name: name, Started: "4711"}) {
			t.Errorf("%q: got %v, %v", name, got, ok)
		}
		parse(name)
	})
}

func TestOfASignalThatIsCaught(t *testing.T) {
	const status = "Name:\tsh\nSigIgn:\t0000000000000200\nSigCgt:\t0000000180004802\nCapInh:\t0\n"
	for number, want := range map[syscall.Signal]bool{syscall.SIGINT: true, syscall.SIGUSR2: true, syscall.SIGUSR1: false, syscall.SIGTERM: true, 0: false} {
		if catches(status, number) != want {
			t.Errorf("%v: got %v", number, !want)
		}
	}
	for _, text := range []string{"", "\nSigCgt:", "\nSigCgt:\tx\n"} {
		if catches(text, syscall.SIGUSR1) {
			t.Errorf("%q", text)
		}
	}
	ours, _ := Read(os.Getpid()) // a Go program catches them all
	theirs := catching(t, nil)
	if got := ids(ThatCatch(syscall.SIGUSR2, []Process{ours, theirs, {Pid: 1 << 30}})); !slices.Equal(got, []int{theirs.Pid}) {
		t.Errorf("got %v, want %v", got, theirs)
	}
}

// catching starts a process that catches SIGUSR2.
func catching(t *testing.T, attributes *syscall.SysProcAttr) Process {
	t.Helper()
	command := exec.CommandContext(t.Context(), "/bin/sh", "-c", "trap : USR2; echo ready; read line")
	input, _ := command.StdinPipe()
	output, _ := command.StdoutPipe()
	command.SysProcAttr = attributes
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = command.Wait()
	})
	_, _ = output.Read(make([]byte, 8))
	started, isThere := Read(command.Process.Pid)
	if !isThere {
		t.Fatal("it has ended")
	}
	return started
}

// Where containers share a namespace of processes, a container's processes are those of its control group.
func TestProcessesOfAnotherContainerAreNotOurs(t *testing.T) {
	group, err := os.MkdirTemp("/sys/fs/cgroup/memory", "mpiop-test-")
	if err != nil {
		group, err = os.MkdirTemp("/sys/fs/cgroup", "mpiop-test-") // version 2
	}
	if err != nil {
		t.Skip("no control group can be made here: ", err)
	}
	t.Cleanup(func() { _ = os.Remove(group) })
	ours, theirs := catching(t, nil), catching(t, nil)
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(theirs.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	found := ids(OfContainer())
	if !slices.Contains(found, ours.Pid) || !slices.Contains(found, os.Getpid()) || slices.Contains(found, theirs.Pid) {
		t.Errorf("got %v, want %v and not %v", found, ours, theirs)
	}
	if isOurs(theirs.Pid) || isOurs(1<<30) {
		t.Error("another container's process, or none, was taken for ours")
	}
	if first := First(); first != 1 && !slices.Contains(found, first) {
		t.Errorf("the first process is %d", first)
	}
}
