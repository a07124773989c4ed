// Package server is the sshd of a worker: it lets in who has the job's key, and runs commands for them.
package server

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"mpiop/agent/internal/children"
	"mpiop/agent/internal/key"
	"mpiop/agent/internal/wire"
)

const (
	pauseAfterError = 50 * time.Millisecond
	betweenReports  = time.Minute
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
	// BetweenReports is the time between two lines about failed logins, and between two about the same error.
	BetweenReports time.Duration
	// CheckpointSignal asks ranks to save their work; 0 if they are not to be asked.
	CheckpointSignal syscall.Signal

	job       key.Key
	children  *children.Children
	admission *admission
	failures  failures
	// Errors of which the log has one line in BetweenReports.
	unaccepted, unstarted repeated

	mutex    sync.Mutex // never held while something is written to a pipe
	sessions map[*session]struct{}
	running  sync.WaitGroup
	isEnding bool // nothing is started any more

	asking sync.Mutex
	asked  map[string]struct{} // the processes that got the checkpoint signal
}

// New returns a server for the job with that key.
func New(job key.Key, all *children.Children, limits Limits) *Server {
	return &Server{
		Interval:       wire.Interval,
		Say:            func(string, ...any) {},
		BetweenReports: betweenReports,
		job:            job,
		children:       all,
		admission:      newAdmission(job.Greeting, limits),
		failures:       failures{bySource: map[string]int{}},
		sessions:       map[*session]struct{}{},
		asked:          map[string]struct{}{},
	}
}

// config returns that of one connection.
func (s *Server) config(arrived *guard) *ssh.ServerConfig {
	member := s.job.Member.PublicKey()
	config := &ssh.ServerConfig{
		Config: wire.ServerConfig(),
		// The others are refused before a signature is checked, which costs time.
		PublicKeyAuthAlgorithms: wire.AlgorithmsOf(member.Type()),
		MaxAuthTries:            2,
		ServerVersion:           wire.Version,
		PublicKeyCallback: func(_ ssh.ConnMetadata, offered ssh.PublicKey) (*ssh.Permissions, error) {
			if !key.Same(offered, member) {
				arrived.otherKey = true
				return nil, errors.New("not the job's key")
			}
			return &ssh.Permissions{}, nil
		},
	}
	config.AddHostKey(hostKey{s.job.Host, arrived})
	return config
}

// hostKey signs each key exchange that the client may have.
type hostKey struct {
	ssh.Signer
	arrived *guard
}

func (h hostKey) Sign(random io.Reader, data []byte) (*ssh.Signature, error) {
	if err := h.arrived.exchange(); err != nil {
		return nil, err
	}
	return h.Signer.Sign(random, data)
}

// Serve serves until the listener is closed.
func (s *Server) Serve(listener net.Listener) error {
	defer s.sayFailures()
	done := make(chan struct{})
	var working sync.WaitGroup
	defer working.Wait()
	defer close(done)
	working.Go(func() { s.report(done) })
	go s.admission.giveTurns(done)
	for {
		connection, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			// No descriptor is free, for one; that passes.
			s.sayOnce(&s.unaccepted, "cannot accept a connection", err)
			time.Sleep(pauseAfterError)
			continue
		}
		arrived, end := newGuard(connection), time.Now().Add(wire.HandshakeTime)
		s.admission.enter(arrived, end)
		go s.serve(arrived, end)
	}
}

// TerminateAll sends TERM to all ranks, and returns when all that commands started has ended. Nothing is started any more.
func (s *Server) TerminateAll() {
	for _, running := range s.end() {
		go running.terminateAll() // one whose subreaper does not read must not hold up the others
	}
	s.running.Wait()
}

// end refuses commands from now on, and returns the sessions that have one.
func (s *Server) end() []*session {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.isEnding = true
	return slices.Collect(maps.Keys(s.sessions))
}

func (s *Server) hasEnded() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.isEnding
}

// report tells of failed logins, at most once a minute.
func (s *Server) report(done <-chan struct{}) {
	ticker := time.NewTicker(s.BetweenReports)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			s.sayFailures()
		}
	}
}

func (s *Server) sayFailures() {
	if line := s.failures.take(); line != "" {
		s.Say("%s", line)
	}
}

func (s *Server) sayOnce(kind *repeated, what string, err error) {
	if line := kind.add(what, err, time.Now(), s.BetweenReports); line != "" {
		s.Say("%s", line)
	}
}

func (s *Server) serve(arrived *guard, end time.Time) {
	connection, channels, requests, heard, err := s.login(arrived, end)
	s.admission.exit(arrived)
	if err != nil {
		_ = arrived.Close()
		if arrived.hasSent.Load() || !hasLeft(err) { // else it may be a probe
			s.failures.add(arrived)
		}
		return
	}
	defer connection.Close()
	go s.answer(connection, requests)
	go wire.Watch(connection, heard, s.Interval, wire.Silent)
	if _, _, err := connection.SendRequest(wire.Node, false, []byte(s.Node)); err != nil {
		return
	}
	s.serveChannels(connection, channels)
}

// hasLeft returns whether the client closed the connection.
func hasLeft(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func (s *Server) login(arrived *guard, end time.Time) (*ssh.ServerConn, <-chan ssh.NewChannel, <-chan *ssh.Request, *wire.Heard, error) {
	heard := &wire.Heard{Conn: arrived}
	if err := arrived.SetDeadline(end); err != nil {
		return nil, nil, nil, nil, fmt.Errorf("cannot limit the handshake: %w", err)
	}
	connection, channels, requests, err := ssh.NewServerConn(heard, s.config(arrived))
	if err == nil {
		arrived.isIn.Store(true)
		err = arrived.SetDeadline(time.Time{})
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
		if s.hasEnded() {
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

// add returns false if nothing may be started any more.
func (s *Server) add(started *session) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.isEnding {
		return false
	}
	s.sessions[started] = struct{}{}
	s.running.Add(1)
	return true
}

func (s *Server) remove(ended *session) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.sessions, ended)
	s.running.Done()
}
