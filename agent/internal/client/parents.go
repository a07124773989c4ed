package client

import (
	"os"
	"syscall"
	"time"

	"mpiop/agent/internal/process"
)

const (
	// TimeToNotice is what mpirun has to end by itself when its ssh has ended, as Open MPI does and Hydra does not.
	TimeToNotice = 3 * time.Second
	// TimeToEnd is the time from TERM to KILL.
	TimeToEnd = 10 * time.Second

	endPoll = 100 * time.Millisecond
	deepest = 16
)

// Parents returns the programs of an MPI library above this process: the one that called it, and what called that.
func Parents() []process.Process {
	var found []process.Process
	for pid := os.Getppid(); len(found) < deepest; {
		parent, ok := process.Read(pid)
		if !ok || !parent.IsStarter() {
			break
		}
		found = append(found, parent)
		pid = parent.Parent
	}
	return found
}

// Abort makes prterun, if it is among the processes, end with 1 at once. When the connection to a daemon ends, it ends within
// milliseconds too, but with 0, though ranks are lost (PRRTE 3.0); the third signal that asks it to end makes it exit where it stands.
func Abort(processes []process.Process) {
	for _, each := range processes {
		if !each.IsPrterun() {
			continue
		}
		// Each signal is another, for one that is pending already is not counted twice.
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
			signalAll([]process.Process{each}, signal)
		}
	}
}

// End ends the processes: they have a moment to end by themselves, then TERM, then KILL.
func End(processes []process.Process, notice, grace time.Duration) {
	if areGone(processes, notice) {
		return
	}
	signalAll(processes, syscall.SIGTERM)
	if areGone(processes, grace) {
		return
	}
	signalAll(processes, syscall.SIGKILL)
}

func signalAll(processes []process.Process, signal syscall.Signal) {
	for _, each := range processes {
		if each.IsThere() {
			_ = syscall.Kill(each.Pid, signal) // it may end now
		}
	}
}

func areGone(processes []process.Process, within time.Duration) bool {
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(endPoll) {
		left := false
		for _, each := range processes {
			left = left || each.IsThere()
		}
		if !left {
			return true
		}
	}
	return false
}
