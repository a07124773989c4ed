package session

import (
	"os"
	"syscall"

	"mpiop/agent/internal/process"
)

// descendants returns all processes below this one, as /proc shows them now.
func descendants() []process.Process { return process.Below(os.Getpid(), process.All()) }

func signalAll(processes []process.Process, signals ...syscall.Signal) {
	for _, signal := range signals {
		for _, each := range processes {
			_ = syscall.Kill(each.Pid, signal) // it may have ended
		}
	}
}
