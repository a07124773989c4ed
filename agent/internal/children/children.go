// Package children starts programs and collects every process that ends: those that were started, and the orphans that the kernel
// hands to the first process of a container and to a subreaper.
package children

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Children are the programs that this process started. There is one of it in a process that runs, for wait4(2) has only one answer
// for each that ends.
type Children struct {
	mutex   sync.Mutex
	waiting map[int]chan syscall.WaitStatus
	changed chan struct{}
}

// New returns a collector that is at work.
func New() *Children {
	c := &Children{waiting: map[int]chan syscall.WaitStatus{}, changed: make(chan struct{}, 1)}
	arrived := make(chan os.Signal, 1)
	signal.Notify(arrived, syscall.SIGCHLD)
	go func() {
		for range arrived {
			c.collect()
		}
	}()
	return c
}

// Start runs the program; its status arrives in the channel.
func (c *Children) Start(program string, words []string, attributes *syscall.ProcAttr) (int, <-chan syscall.WaitStatus, error) {
	// Locked, so that the end of the child is not collected before it is known.
	c.mutex.Lock()
	defer c.mutex.Unlock()
	pid, err := syscall.ForkExec(program, words, attributes)
	if err != nil {
		return 0, nil, &os.PathError{Op: "start", Path: program, Err: err}
	}
	ended := make(chan syscall.WaitStatus, 1)
	c.waiting[pid] = ended
	return pid, ended, nil
}

// Any returns whether any child is left, orphans that became ours included.
func (c *Children) Any() bool { return c.collect() }

// Changed tells, with no promise how often, that children have ended.
func (c *Children) Changed() <-chan struct{} { return c.changed }

func (c *Children) collect() (any bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid == 0 {
			return err == nil
		}
		if ended, known := c.waiting[pid]; known {
			delete(c.waiting, pid)
			ended <- status
		}
		select {
		case c.changed <- struct{}{}:
		default:
		}
	}
}
