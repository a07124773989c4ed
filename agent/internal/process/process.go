// Package process reads what the kernel tells of processes, and knows those of MPI libraries.
package process

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"mpiop/agent/internal/cgroup"
)

// Process is one, as proc_pid_stat(5) shows it. Its start time tells it from a later one of the same id.
type Process struct {
	Pid, Parent, Session int
	Name, Started        string
	// IsZombie is set if it has ended, and its parent has not taken its exit code.
	IsZombie bool
}

// Read returns the process of that id, if there is one.
func Read(pid int) (Process, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Process{}, false
	}
	return parse(string(text))
}

// All returns the processes that are there now.
func All() []Process {
	var found []Process
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			if process, ok := Read(pid); ok { // else it has just ended
				found = append(found, process)
			}
		}
	}
	return found
}

// OfContainer returns the processes of this one's container. All would be too many where containers share a namespace of processes
// (`shareProcessNamespace`, `hostPID`).
func OfContainer() []Process {
	return slices.DeleteFunc(All(), func(process Process) bool { return !isOurs(process.Pid) })
}

// First returns the id of the first process of this one's container, whose output is the container's log. Where containers share a namespace
// of processes, it does not have the id 1.
func First() int {
	if isOurs(1) {
		return 1
	}
	first := slices.MinFunc(OfContainer(), func(a, b Process) int {
		return cmp.Or(cmp.Compare(len(a.Started), len(b.Started)), cmp.Compare(a.Started, b.Started), cmp.Compare(a.Pid, b.Pid))
	})
	return first.Pid
}

// isOurs returns whether the process is in our container, which is a control group. (A mount namespace is not: a rank may have one of
// its own.)
func isOurs(pid int) bool {
	ours, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return true // a kernel without control groups has no containers
	}
	theirs, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	return err == nil && cgroup.Of(string(ours)) == cgroup.Of(string(theirs))
}

// parse reads `pid (name) state ppid pgrp session …`; the name may hold anything.
func parse(text string) (Process, bool) {
	const stateField, parentField, sessionField, startField = 0, 1, 3, 19
	from, to := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if from < 1 || to < from {
		return Process{}, false
	}
	fields := strings.Fields(text[to+1:])
	if len(fields) <= startField {
		return Process{}, false
	}
	pid, noPid := strconv.Atoi(text[:from-1])
	parent, noParent := strconv.Atoi(fields[parentField])
	session, noSession := strconv.Atoi(fields[sessionField])
	isWhole := noPid == nil && noParent == nil && noSession == nil
	return Process{pid, parent, session, text[from+1 : to], fields[startField], fields[stateField] == "Z"}, isWhole
}

// The programs of MPI libraries that call ssh, or that ssh starts.
var starters = []string{"mpirun", "mpiexec", "orterun", "orted", "prte", "oshrun", "shmemrun", "hydra_", "pmi_proxy"}

// IsStarter returns whether it is a program of an MPI library that starts ranks, or daemons for them.
func (p Process) IsStarter() bool {
	for _, starter := range starters {
		if strings.HasPrefix(p.Name, starter) {
			return true
		}
	}
	return false
}

// IsPrterun returns whether it is the mpirun of Open MPI 5.
func (p Process) IsPrterun() bool { return p.Name == "prterun" }

// Catches returns whether the process has a handler for the signal.
func (p Process) Catches(signal syscall.Signal) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.Pid) + "/status")
	return err == nil && catches(string(text), signal)
}

// catches reads the mask of proc_pid_status(5), in which signal 1 is the lowest bit.
func catches(text string, signal syscall.Signal) bool {
	_, after, _ := strings.Cut(text, "\nSigCgt:")
	line, _, _ := strings.Cut(after, "\n")
	mask, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	return err == nil && signal > 0 && mask>>(signal-1)&1 == 1
}

// IsThere returns whether the process has not ended, or its parent has not taken its exit code.
func (p Process) IsThere() bool {
	now, ok := Read(p.Pid)
	return ok && now.Started == p.Started
}

// HasEnded returns whether the process has ended, whatever its parent knows.
func (p Process) HasEnded() bool {
	now, ok := Read(p.Pid)
	return !ok || now.Started != p.Started || now.IsZombie
}

// String and Parse carry a process over a command line.
func (p Process) String() string { return strconv.Itoa(p.Pid) + ":" + p.Started }

// Parse reads id and start time as String writes them.
func Parse(text string) (Process, bool) {
	first, started, found := strings.Cut(text, ":")
	pid, err := strconv.Atoi(first)
	return Process{Pid: pid, Started: started}, found && err == nil && pid >= 1
}

// Below returns the processes below the one with that id.
func Below(root int, all []Process) []Process {
	children := map[int][]Process{}
	for _, process := range all {
		children[process.Parent] = append(children[process.Parent], process)
	}
	var found []Process
	for next := children[root]; len(next) > 0; {
		process := next[0]
		next = append(next[1:], children[process.Pid]...)
		// /proc is not read at one moment: a loop is not possible, but would be endless.
		delete(children, process.Pid)
		found = append(found, process)
	}
	return found
}

// client is this program, by which a daemon has started others.
const client = "mpiop-agent"

// WithoutStarters leaves out the programs of MPI libraries and their ssh, this process, and what started them.
func WithoutStarters(all []Process) []Process {
	parents := map[int]int{}
	for _, process := range all {
		parents[process.Pid] = process.Parent
	}
	isAbove := map[int]bool{}
	for _, process := range all {
		if !process.IsStarter() && process.Name != client && process.Pid != os.Getpid() {
			continue
		}
		for pid, isOne := process.Pid, true; isOne && !isAbove[pid]; {
			isAbove[pid] = true
			pid = parents[pid]
			_, isOne = parents[pid]
		}
	}
	var left []Process
	for _, process := range all {
		if !isAbove[process.Pid] {
			left = append(left, process)
		}
	}
	return left
}

// ThatCatch returns the processes that are not programs of an MPI library and have a handler for the signal.
func ThatCatch(signal syscall.Signal, all []Process) []Process {
	return slices.DeleteFunc(WithoutStarters(all), func(process Process) bool { return !process.Catches(signal) })
}

// SignalAll sends each of the signals to all processes.
func SignalAll(processes []Process, signals ...syscall.Signal) {
	for _, signal := range signals {
		for _, each := range processes {
			_ = syscall.Kill(each.Pid, signal) // it may have ended
		}
	}
}
