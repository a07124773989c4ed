// Package session runs one command and, when its connection ends, ends everything that came of it.
//
// It is a process of its own, one a connection: the kernel gives a subreaper the orphans of its descendants, so nothing that the
// command starts gets away, whatever it does.
package session

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"mpiop/agent/internal/children"
	"mpiop/agent/internal/process"
)

const (
	// Word is the subcommand; the next word of the command line is the command.
	Word = "session"
	// TerminateAll is written to the control pipe when the Pod ends, for a TERM to all ranks; any other byte is a signal for the
	// command's group.
	TerminateAll = 0
	// Grace is the time from TERM to KILL.
	Grace = 5 * time.Second

	control = 3
	status  = 4

	shell           = "/bin/sh"
	setSubreaper    = 36 // PR_SET_CHILD_SUBREAPER, prctl(2)
	notFound        = 127
	patience        = 30 * time.Second
	betweenTwoKills = 50 * time.Millisecond
)

// Main runs the command until it and all that it started have ended. It writes the wait status of the command to the status pipe, as soon as
// that has ended.
// The end of the control pipe is the end of the connection.
func Main(command string) error {
	syscall.CloseOnExec(control)
	syscall.CloseOnExec(status)
	if _, _, err := syscall.RawSyscall(syscall.SYS_PRCTL, setSubreaper, 1, 0); err != 0 {
		return fmt.Errorf("cannot become a subreaper: %w", err)
	}
	// Caught, not ignored: what is ignored here would be ignored by the command too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	all := children.New()
	return run(command, all, os.NewFile(control, "control"), os.NewFile(status, "status"))
}

func run(command string, all *children.Children, controlPipe io.Reader, statusPipe io.Writer) error {
	pid, ended, err := all.Start(shell, []string{"sh", "-c", command}, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "mpiop-agent: cannot run a command in this image: %v; mpirun's command lines need a shell\n", err)
		return writeStatus(statusPipe, notFound<<8)
	}
	if err := forgetStreams(); err != nil {
		process.SignalAll(descendants(), syscall.SIGKILL)
		return err
	}
	closed := make(chan struct{})
	var podEnds atomic.Bool
	go func() {
		follow(controlPipe, pid, &podEnds)
		close(closed)
	}()
	var code syscall.WaitStatus
	select {
	case code = <-ended:
		err := writeStatus(statusPipe, code)
		endAll(all, &podEnds)
		return err
	case <-closed:
		endAll(all, &podEnds)
		select {
		case code = <-ended:
		default:
		}
	}
	return writeStatus(statusPipe, code)
}

func writeStatus(pipe io.Writer, code syscall.WaitStatus) error {
	return binary.Write(pipe, binary.LittleEndian, uint32(code))
}

// forgetStreams closes our ends of the command's streams: they end when the command's do.
func forgetStreams() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("cannot close the command's streams: %w", err)
	}
	defer null.Close()
	for stream := range 3 {
		if err := syscall.Dup3(int(null.Fd()), stream, 0); err != nil {
			return fmt.Errorf("cannot close the command's streams: %w", err)
		}
	}
	return nil
}

// follow does what the control pipe says, until it ends.
func follow(pipe io.Reader, group int, podEnds *atomic.Bool) {
	order := make([]byte, 1)
	for {
		if _, err := io.ReadFull(pipe, order); err != nil {
			return
		}
		if order[0] == TerminateAll {
			podEnds.Store(true)
			// A daemon that obeyed would leave mpirun with a lost connection, which Open MPI 5 takes for a success; of a rank that
			// a signal ended every library says so.
			process.SignalAll(process.WithoutStarters(descendants()), syscall.SIGTERM, syscall.SIGCONT)
			continue
		}
		_ = syscall.Kill(-group, syscall.Signal(order[0])) // it may have ended
	}
}

// endAll sends TERM to all that is left, then KILL. When the Pod ends, its own period of grace counts, and the kubelet kills.
func endAll(all *children.Children, podEnds *atomic.Bool) {
	if !all.Any() {
		return
	}
	process.SignalAll(descendants(), syscall.SIGTERM, syscall.SIGCONT)
	if wait(all, time.After(Grace), nil) {
		return
	}
	if podEnds.Load() {
		wait(all, nil, nil)
		return
	}
	// Again and again: what forks while we look is found the next time. A process that hangs in the kernel is left to it.
	ticker := time.NewTicker(betweenTwoKills)
	defer ticker.Stop()
	wait(all, time.After(patience), ticker.C)
}

func wait(all *children.Children, end, kill <-chan time.Time) (ended bool) {
	for all.Any() {
		select {
		case <-all.Changed():
		case <-kill:
			process.SignalAll(descendants(), syscall.SIGKILL)
		case <-end:
			return false
		}
	}
	return true
}

// ErrNoStatus says that a session ended without a word about its command.
var ErrNoStatus = errors.New("the session ended before its command")

// ReadStatus reads what Main writes.
func ReadStatus(pipe io.Reader) (syscall.WaitStatus, error) {
	var code uint32
	if err := binary.Read(pipe, binary.LittleEndian, &code); err != nil {
		return 0, ErrNoStatus
	}
	return syscall.WaitStatus(code), nil
}
