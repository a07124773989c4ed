package client

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// TimeToNotice is what mpirun has to end by itself when its ssh has ended, as Open MPI does and Hydra does not.
	TimeToNotice = 3 * time.Second
	// TimeToEnd is the time from TERM to KILL.
	TimeToEnd = 10 * time.Second

	endPoll = 100 * time.Millisecond
	deepest = 16
)

// The programs of MPI libraries that call ssh, or stand above one that does.
var starters = []string{"mpirun", "mpiexec", "orterun", "orted", "prte", "oshrun", "shmemrun", "hydra_", "pmi_proxy"}

// Process is one that cannot be mistaken for a later one of the same id.
type Process struct {
	Pid     int
	Started string
}

// Parents returns the programs of an MPI library above this process: the one that called it, and what called that.
func Parents() []Process {
	var found []Process
	for pid := os.Getppid(); len(found) < deepest; {
		process, name, parent, ok := inspect(pid)
		if !ok || !isStarter(name) {
			break
		}
		found = append(found, process)
		pid = parent
	}
	return found
}

func isStarter(name string) bool {
	for _, starter := range starters {
		if strings.HasPrefix(name, starter) {
			return true
		}
	}
	return false
}

// inspect reads what proc_pid_stat(5) says of a process.
func inspect(pid int) (process Process, name string, parent int, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Process{}, "", 0, false
	}
	name, parent, started, ok := parseStat(string(text))
	return Process{pid, started}, name, parent, ok
}

// parseStat takes name, parent and start time from `pid (name) state ppid …`; the name may hold anything.
func parseStat(text string) (name string, parent int, started string, ok bool) {
	const parentField, startField = 1, 19
	from, to := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if from < 0 || to < from {
		return "", 0, "", false
	}
	fields := strings.Fields(text[to+1:])
	if len(fields) <= startField {
		return "", 0, "", false
	}
	parent, err := strconv.Atoi(fields[parentField])
	return text[from+1 : to], parent, fields[startField], err == nil
}

// IsThere returns whether the process has not ended.
func (p Process) IsThere() bool {
	now, _, _, ok := inspect(p.Pid)
	return ok && now == p
}

// String and ParseProcess carry a process over a command line.
func (p Process) String() string { return strconv.Itoa(p.Pid) + ":" + p.Started }

// ParseProcess reads what String writes.
func ParseProcess(text string) (Process, bool) {
	first, started, found := strings.Cut(text, ":")
	pid, err := strconv.Atoi(first)
	return Process{pid, started}, found && err == nil && pid >= 1
}

// End ends the processes: they have a moment to end by themselves, then TERM, then KILL.
func End(processes []Process, notice, grace time.Duration) {
	if areGone(processes, notice) {
		return
	}
	signalAll(processes, syscall.SIGTERM)
	if areGone(processes, grace) {
		return
	}
	signalAll(processes, syscall.SIGKILL)
}

func signalAll(processes []Process, signal syscall.Signal) {
	for _, process := range processes {
		if process.IsThere() {
			_ = syscall.Kill(process.Pid, signal) // it may end now
		}
	}
}

func areGone(processes []Process, within time.Duration) bool {
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(endPoll) {
		left := false
		for _, process := range processes {
			left = left || process.IsThere()
		}
		if !left {
			return true
		}
	}
	return false
}
