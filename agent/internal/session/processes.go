package session

import (
	"os"

	"mpiop/agent/internal/process"
)

// descendants returns all processes below this one, as /proc shows them now.
func descendants() []process.Process { return process.Below(os.Getpid(), process.All()) }
