package server

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"mpiop/agent/internal/process"
	"mpiop/agent/internal/wire"
)

// Checkpoint sends the checkpoint signal to each rank that catches it, but only once, and returns whether there is such a rank.
// One that does not catch it would be ended by it.
func (s *Server) Checkpoint() bool {
	s.asking.Lock()
	defer s.asking.Unlock()
	ranks := process.ThatCatch(s.CheckpointSignal, process.Below(os.Getpid(), process.All()))
	for _, rank := range ranks {
		if _, wasAsked := s.asked[rank.String()]; !wasAsked {
			s.asked[rank.String()] = struct{}{}
			_ = syscall.Kill(rank.Pid, s.CheckpointSignal) // it may have ended
		}
	}
	return len(ranks) > 0
}

// WaitForCommands returns when all that commands started has ended, or the time is over. Nothing is started any more.
func (s *Server) WaitForCommands(limit time.Duration) {
	s.end()
	ended := make(chan struct{})
	go func() {
		s.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(limit):
	}
}

// answer answers the requests of a connection that are not about its session.
func (s *Server) answer(connection ssh.Conn, requests <-chan *ssh.Request) {
	hasHome := false
	for request := range requests {
		if request.Type == wire.Home && !hasHome {
			hasHome = true
			s.answerHome(connection, request)
			continue
		}
		done := request.Type == wire.Checkpoint && s.Checkpoint()
		if request.WantReply {
			_ = request.Reply(done, nil)
		}
	}
}
