package server

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"mpiop/agent/internal/process"
)

// pipes connect the server with a session: three streams, orders, and the status at the end.
type pipes struct {
	input, output, errors, control, status *os.File

	theirs []*os.File
}

func openPipes() (*pipes, error) {
	var made pipes
	ours := []**os.File{&made.input, &made.output, &made.errors, &made.control, &made.status}
	for at, end := range ours {
		reader, writer, err := os.Pipe()
		if err != nil {
			made.closeTheirs()
			made.closeOurs()
			return nil, fmt.Errorf("no pipe: %w", err)
		}
		if at == 0 || at == 3 { // what goes to the session
			reader, writer = writer, reader
		}
		*end = reader
		made.theirs = append(made.theirs, writer)
	}
	return &made, nil
}

// theirFiles returns the descriptors in the order of the session's: 0 to 2 are the streams, 3 the control, 4 the status.
func (p *pipes) theirFiles() []uintptr {
	var files []uintptr
	for _, file := range p.theirs {
		files = append(files, file.Fd())
	}
	return files
}

func (p *pipes) closeTheirs() {
	for _, file := range p.theirs {
		_ = file.Close()
	}
}

func (p *pipes) closeOurs() {
	for _, file := range []*os.File{p.input, p.output, p.errors, p.control, p.status} {
		if file != nil {
			_ = file.Close()
		}
	}
}

func (p *pipes) closeOutputs() {
	_ = p.output.Close()
	_ = p.errors.Close()
}

// afterEnd is how long output may still come once all processes have ended: only what hangs in the kernel holds a pipe then.
const afterEnd = 5 * time.Second

// limited reads a pipe. Each Read lasts afterEnd at most once limit was called. The time between two of them does not count: the client's
// reader may stand still.
type limited struct {
	pipe      *os.File
	isLimited atomic.Bool
}

func (l *limited) Read(buffer []byte) (int, error) {
	if l.isLimited.Load() {
		l.extend()
	}
	return l.pipe.Read(buffer)
}

func (l *limited) limit() {
	l.isLimited.Store(true)
	l.extend()
}

func (l *limited) extend() { _ = l.pipe.SetReadDeadline(time.Now().Add(afterEnd)) }

// killSession kills all processes of the session that the process with that id led.
func killSession(leader int) {
	for _, each := range process.All() {
		if each.Session == leader {
			_ = syscall.Kill(each.Pid, syscall.SIGKILL)
		}
	}
}
