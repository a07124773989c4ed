package client

import (
	"os"
	"slices"
	"syscall"
	"time"

	"mpiop/agent/internal/process"
)

const (
	// TimeToNotice is what mpirun has to end by itself when its ssh has ended, as Open MPI does and Hydra does not.
	TimeToNotice = 3 * time.Second
	// TimeToEnd is the time from TERM to KILL.
	TimeToEnd = 10 * time.Second

	// timeToAbort is what prterun has to end after a third signal.
	timeToAbort = 2 * time.Second

	endPoll  = 100 * time.Millisecond
	holdPoll = 10 * time.Millisecond
	deepest  = 16
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

// HasPrterun returns whether prterun, the mpirun of Open MPI 5, is among the processes.
func HasPrterun(processes []process.Process) bool {
	return slices.ContainsFunc(processes, process.Process.IsPrterun)
}

// Abort makes prterun, if it is among the processes, end with an error, and returns when it has. When the connection to a daemon ends, it
// ends within milliseconds too, but with 0, though ranks are lost (PRRTE 3.0); the third signal that asks it to end makes it exit with 1
// where it stands.
func Abort(processes []process.Process) {
	ended := slices.DeleteFunc(slices.Clone(processes), func(each process.Process) bool { return !each.IsPrterun() })
	// Each signal is another, for one that is pending already is not counted twice.
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		signalAll(ended, signal)
	}
	if !areGone(ended, timeToAbort) {
		signalAll(ended, syscall.SIGKILL)
		areGone(ended, timeToAbort)
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

// WaitUntilTaken returns when the parent has taken the exit code of its child, or has ended itself.
func WaitUntilTaken(child, parent process.Process) {
	for poll := holdPoll; child.IsThere() && !parent.HasEnded(); poll = min(2*poll, endPoll) {
		time.Sleep(poll)
	}
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
