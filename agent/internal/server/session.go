package server

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	subreaper "mpiop/agent/internal/session"
	"mpiop/agent/internal/wire"
)

// session is one command of one connection.
type session struct {
	server     *Server
	connection io.Closer
	channel    ssh.Channel

	mutex       sync.Mutex
	environment []string
	control     *os.File // nil before the command is started, and after it has ended
	isOver      bool
}

func newSession(server *Server, connection io.Closer, channel ssh.Channel) *session {
	return &session{server: server, connection: connection, channel: channel, environment: os.Environ()}
}

func (s *session) serve(requests <-chan *ssh.Request) {
	for request := range requests {
		done := s.answer(request)
		if request.WantReply {
			_ = request.Reply(done, nil)
		}
	}
}

// answer does what the request asks for, and returns whether it did. A terminal, a subsystem or a login shell is not to be had.
func (s *session) answer(request *ssh.Request) bool {
	switch request.Type {
	case "env":
		var variable wire.Env
		return ssh.Unmarshal(request.Payload, &variable) == nil && s.set(variable)
	case "exec":
		var command wire.Exec
		return ssh.Unmarshal(request.Payload, &command) == nil && s.start(command.Command)
	case "signal":
		var signal wire.Signal
		return ssh.Unmarshal(request.Payload, &signal) == nil && s.signal(signal.Name)
	}
	return false
}

// signal refuses a name that it does not know: the number 0 is another order.
func (s *session) signal(name string) bool {
	number := wire.SignalNumber(name)
	return number != 0 && s.order(byte(number))
}

func (s *session) set(variable wire.Env) bool {
	if variable.Name == "" || strings.ContainsAny(variable.Name, "=\x00") || strings.Contains(variable.Value, "\x00") {
		return false
	}
	prefix := variable.Name + "="
	s.environment = slices.DeleteFunc(s.environment, func(set string) bool { return strings.HasPrefix(set, prefix) })
	s.environment = append(s.environment, prefix+variable.Value)
	return true
}

// order writes to the control pipe of the subreaper, which may be full: so no lock is held.
func (s *session) order(order byte) bool {
	s.mutex.Lock()
	control := s.control
	s.mutex.Unlock()
	if control == nil {
		return false
	}
	_, err := control.Write([]byte{order}) // it ends when the pipe is closed
	return err == nil
}

func (s *session) terminateAll() { s.order(subreaper.TerminateAll) }

// connectionEnded makes the subreaper end everything.
func (s *session) connectionEnded() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.isOver = true
	s.closeControl()
}

func (s *session) closeControl() {
	if s.control != nil {
		_ = s.control.Close()
		s.control = nil
	}
}

func (s *session) start(command string) bool {
	isStarted, err := s.tryStart(command)
	if err != nil {
		s.server.sayOnce(&s.server.unstarted, "cannot run a command", err)
	}
	return isStarted
}

func (s *session) tryStart(command string) (bool, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.isOver || !s.server.add(s) {
		return false, nil
	}
	pipes, err := openPipes()
	if err != nil {
		s.server.remove(s)
		return false, err
	}
	pid, ended, err := s.server.children.Start(s.server.Program, append(slices.Clone(s.server.Words), command), &syscall.ProcAttr{
		Env:   s.environment,
		Files: pipes.theirFiles(),
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	pipes.closeTheirs()
	if err != nil {
		pipes.closeOurs()
		s.server.remove(s)
		return false, err
	}
	s.isOver = true // one command a session
	s.control = pipes.control
	go s.follow(pid, ended, pipes)
	return true, nil
}

// follow passes the streams on until all that the command started has ended, and tells how the command ended.
func (s *session) follow(pid int, ended <-chan syscall.WaitStatus, pipes *pipes) {
	defer s.server.remove(s)
	go func() {
		_, _ = io.Copy(pipes.input, s.channel)
		_ = pipes.input.Close()
	}()
	output, said := &limited{pipe: pipes.output}, &limited{pipe: pipes.errors}
	var outputs sync.WaitGroup
	outputs.Go(func() { copyOut(s.channel, output) })
	outputs.Go(func() { copyOut(s.channel.Stderr(), said) })
	status, err := subreaper.ReadStatus(pipes.status)
	if err == nil {
		// What the command has started may take a while to end; who waits for the command is told now.
		_, _ = s.channel.SendRequest(wire.Ended, false, ssh.Marshal(wire.ExitStatus{Code: codeOf(status)}))
	}
	if own := <-ended; err != nil || own.Signaled() {
		// The subreaper was killed, by the kernel for want of memory maybe. What is still in its session ends with it.
		s.server.Say("a session ended before its command; its processes are killed")
		killSession(pid)
		status = syscall.WaitStatus(syscall.SIGKILL)
		// What left its session is not found, and may write for ever.
		defer time.AfterFunc(afterEnd, pipes.closeOutputs).Stop()
	}
	output.limit()
	said.limit()
	outputs.Wait()
	s.mutex.Lock()
	s.closeControl()
	s.mutex.Unlock()
	pipes.closeOurs()
	s.tell(status)
	_ = s.channel.Close()
}

// copyOut empties the pipe even when nobody listens any more, for who writes to it is to be ended by signals, not by a full pipe.
func copyOut(channel io.Writer, pipe io.Reader) {
	if _, err := io.Copy(channel, pipe); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		_, _ = io.Copy(io.Discard, pipe)
	}
}

func (s *session) tell(status syscall.WaitStatus) {
	_ = s.channel.CloseWrite()
	if status.Signaled() {
		name := wire.SignalName(status.Signal())
		if name != "" {
			_, _ = s.channel.SendRequest("exit-signal", false, ssh.Marshal(wire.ExitSignal{Name: name, CoreDumped: status.CoreDump()}))
			return
		}
	}
	_, _ = s.channel.SendRequest("exit-status", false, ssh.Marshal(wire.ExitStatus{Code: codeOf(status)}))
}

// codeOf returns what a shell says of a command that ended so.
func codeOf(status syscall.WaitStatus) uint32 {
	if status.Signaled() {
		return uint32(128 + status.Signal())
	}
	return uint32(status.ExitStatus())
}
