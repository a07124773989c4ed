// Package server is the sshd of a worker: it lets in who has the job's key, and runs commands for them.
package server

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"mpiop/agent/internal/children"
	"mpiop/agent/internal/key"
	"mpiop/agent/internal/wire"
)

const (
	// HalfOpen is how many connections that have not logged in are kept.
	HalfOpen = 1024

	pauseAfterError = 50 * time.Millisecond
	betweenReports  = 10 * time.Second
)

// Server serves one job.
type Server struct {
	// Program and Words start a session; the command is added as the last word.
	Program string
	Words   []string
	// Node is the name of the machine, which clients tell when they lose it.
	Node string
	// Say writes a line of the log.
	Say func(format string, values ...any)
	// Interval is the time between two keep-alives.
	Interval time.Duration
	// CheckpointSignal asks ranks to save their work; 0 if they are not to be asked.
	CheckpointSignal syscall.Signal

	config   *ssh.ServerConfig
	children *children.Children
	pending  *pending

	mutex    sync.Mutex
	sessions map[*session]struct{}
	running  sync.WaitGroup
	asked    map[string]struct{} // the processes that got the checkpoint signal
	isEnding atomic.Bool
}

// New returns a server for the job with that key.
func New(job key.Key, all *children.Children) *Server {
	config := &ssh.ServerConfig{
		Config:                  wire.Config(),
		PublicKeyAuthAlgorithms: wire.SignatureAlgorithms(),
		MaxAuthTries:            2,
		ServerVersion:           wire.Version,
		PublicKeyCallback: func(_ ssh.ConnMetadata, offered ssh.PublicKey) (*ssh.Permissions, error) {
			if !key.Same(offered, job.Member.PublicKey()) {
				return nil, errors.New("not the job's key")
			}
			return &ssh.Permissions{}, nil
		},
	}
	config.AddHostKey(job.Host)
	return &Server{
		Interval: wire.Interval,
		Say:      func(string, ...any) {},
		config:   config,
		children: all,
		pending:  newPending(HalfOpen),
		sessions: map[*session]struct{}{},
		asked:    map[string]struct{}{},
	}
}

// Serve serves until the listener is closed.
func (s *Server) Serve(listener net.Listener) error {
	done := make(chan struct{})
	defer close(done)
	go s.report(done)
	for {
		connection, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			// No descriptor is free, for one; that passes.
			s.Say("cannot accept a connection: %v", err)
			time.Sleep(pauseAfterError)
			continue
		}
		waiting := s.pending.add(connection)
		go s.serve(connection, waiting)
	}
}

// TerminateAll sends TERM to all ranks, and returns when all that commands started has ended.
func (s *Server) TerminateAll() {
	s.mutex.Lock()
	for running := range s.sessions {
		running.terminateAll()
	}
	s.mutex.Unlock()
	s.running.Wait()
}

// report tells of connections that were closed, but not of each: there may be thousands in a second.
func (s *Server) report(done <-chan struct{}) {
	ticker := time.NewTicker(betweenReports)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			if dropped := s.pending.takeDropped(); dropped > 0 {
				s.Say("closed %d connections that did not log in while more came", dropped)
			}
		}
	}
}

func (s *Server) serve(raw net.Conn, waiting entry) {
	connection, channels, requests, heard, err := s.login(raw)
	s.pending.remove(waiting)
	if err != nil {
		_ = raw.Close()
		return
	}
	defer connection.Close()
	go s.answer(requests)
	go wire.Watch(connection, heard, s.Interval, wire.Silent)
	if _, _, err := connection.SendRequest(wire.Node, false, []byte(s.Node)); err != nil {
		return
	}
	s.serveChannels(connection, channels)
}

func (s *Server) login(raw net.Conn) (*ssh.ServerConn, <-chan ssh.NewChannel, <-chan *ssh.Request, *wire.Heard, error) {
	heard := &wire.Heard{Conn: raw}
	if err := raw.SetDeadline(time.Now().Add(wire.HandshakeTime)); err != nil {
		return nil, nil, nil, nil, fmt.Errorf("cannot limit the handshake: %w", err)
	}
	connection, channels, requests, err := ssh.NewServerConn(heard, s.config)
	if err == nil {
		err = raw.SetDeadline(time.Time{})
	}
	return connection, channels, requests, heard, err
}

// serveChannels lets a connection have one session, and nothing else: no forwarding of ports, agents or displays.
func (s *Server) serveChannels(connection *ssh.ServerConn, channels <-chan ssh.NewChannel) {
	var running *session
	for offered := range channels {
		if offered.ChannelType() != "session" || running != nil {
			_ = offered.Reject(ssh.Prohibited, "one session for one command is all there is")
			continue
		}
		if s.isEnding.Load() {
			// The client tries again, at the address of the Pod that comes next.
			_ = offered.Reject(ssh.ResourceShortage, "this Pod ends")
			continue
		}
		channel, requests, err := offered.Accept()
		if err != nil {
			break
		}
		running = newSession(s, connection, channel)
		go running.serve(requests)
	}
	if running != nil {
		running.connectionEnded()
	}
}

func (s *Server) add(started *session) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.sessions[started] = struct{}{}
	s.running.Add(1)
}

func (s *Server) remove(ended *session) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.sessions, ended)
	s.running.Done()
}
