package client

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"mpiop/agent/internal/wire"
)

// run runs the command on the connection.
func (c *Client) run(connection *connection) (code int, err error) {
	silent := make(chan bool, 1)
	go func() { silent <- wire.Watch(connection, connection.heard, c.Times.Interval, wire.Silent) }()
	command, home := c.openHome(connection)
	if home != nil {
		defer home.drain()
	}
	settle := home.settle
	defer func() { settle(err) }()
	accepted, err := connection.channel.SendRequest("exec", true, ssh.Marshal(wire.Exec{Command: command}))
	if err != nil {
		return wire.Lost, c.lost(fmt.Sprintf("cannot run a command at %s: %v", connection.address, err))
	}
	if !accepted {
		return wire.Lost, c.lost("it refused to run a command")
	}
	stop, over := c.passSignals(connection, connection.channel)
	defer stop()
	ended := sync.OnceValue(func() *LostError { return c.endOf(connection, silent) })
	code, isTold, unwritten := c.passStreams(connection.channel, connection.requests, over, func(code int, isTold bool) {
		c.takeNode(connection)
		switch {
		case !isTold:
			settle(ended())
		case wasKilled(code):
			settle(c.lost(fmt.Sprintf("signal %d ended what mpirun started there", code-bySignal)))
		case home != nil && code != 0:
			settle(c.keep(home, code))
		default:
			settle(nil)
		}
	})
	if isTold && unwritten == nil {
		return code, nil
	}
	if isTold {
		return cmp.Or(code, wire.Lost), c.lost(fmt.Sprintf("its output cannot be written: %v", unwritten))
	}
	return wire.Lost, ended()
}

// keep makes mpirun learn the exit code of its daemon before it notices that the connection ends: then it ends with that code, unless it
// ended the daemon itself. The code is 1 after a TERM. It is 255 if a signal ended the daemon, because the command is the daemon's parent.
func (c *Client) keep(home *home, code int) error {
	ended := c.lost(fmt.Sprintf("lost: its daemon ended with code %d", code))
	kept, err := home.keep(c.Hold)
	if err != nil {
		return ended
	}
	if kept {
		c.Say("%v", ended)
	}
	return nil
}

// endOf closes the connection and returns why it ended before the command did.
func (c *Client) endOf(connection *connection, silent <-chan bool) *LostError {
	_ = connection.Close()
	if <-silent {
		return c.lost(fmt.Sprintf("lost: no answer from %s for %v", connection.address, c.Times.Interval*wire.Silent))
	}
	lost := c.lost(fmt.Sprintf("lost: the connection to %s ended before the command did", connection.address))
	lost.Ended = true
	return lost
}

// takeNode learns the name of the host's node, if it was told.
func (c *Client) takeNode(connection *connection) {
	select {
	case c.node = <-connection.told:
	default:
	}
}

// passStreams returns when both outputs have ended, or the time after a signal is over: whether the exit code was told, and why output
// was not written.
func (c *Client) passStreams(
	channel ssh.Channel, requests <-chan *ssh.Request, over <-chan struct{}, settle func(code int, isTold bool),
) (code int, isTold bool, unwritten error) {
	go func() {
		if c.Input != nil {
			_, _ = io.Copy(channel, c.Input)
		}
		_ = channel.CloseWrite()
	}()
	outputs := make(chan error, 2)
	go func() { outputs <- copyOut(c.Output, channel) }()
	go func() { outputs <- copyOut(c.Error, channel.Stderr()) }()
	code, isTold = readStatus(requests, settle)
	for range 2 {
		select {
		case err := <-outputs:
			unwritten = cmp.Or(unwritten, err)
		case <-over:
			return code, isTold, errStandstill
		}
	}
	return code, isTold, unwritten
}

var errStandstill = errors.New("who reads it stands still")

// copyOut reads to the end though it cannot write: otherwise the host would wait for ever.
func copyOut(to io.Writer, from io.Reader) error {
	_, err := io.Copy(to, from)
	if err != nil {
		_, _ = io.Copy(io.Discard, from)
	}
	return err
}

// readStatus returns the exit code of the command, and whether it was told. It calls settle as soon as that is known, or that it is not.
func readStatus(requests <-chan *ssh.Request, settle func(code int, isTold bool)) (code int, isTold bool) {
	// The channel ends after the last request, whether the command ended or the connection.
	for request := range requests {
		switch request.Type {
		case wire.Ended:
			var status wire.ExitStatus
			if ssh.Unmarshal(request.Payload, &status) == nil {
				settle(int(status.Code), true)
			}
		case "exit-status":
			var status wire.ExitStatus
			if ssh.Unmarshal(request.Payload, &status) == nil {
				code, isTold = int(status.Code), true
			}
		case "exit-signal":
			var signal wire.ExitSignal
			if ssh.Unmarshal(request.Payload, &signal) == nil {
				code, isTold = wire.ExitCode(signal.Name), true
			}
		}
		if request.WantReply {
			_ = request.Reply(false, nil)
		}
	}
	settle(code, isTold)
	return code, isTold
}

// passSignals sends each signal to the command. One that ends programs ends the connection a little later, and the command with it:
// then it is over.
func (c *Client) passSignals(connection io.Closer, channel ssh.Channel) (stop func(), over <-chan struct{}) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		var ending <-chan time.Time
		for {
			select {
			case <-done:
				return
			case <-ending:
				_ = connection.Close()
				close(ended)
				return
			case arrived := <-c.Signals:
				number, _ := arrived.(syscall.Signal)
				_, _ = channel.SendRequest("signal", false, ssh.Marshal(wire.Signal{Name: wire.SignalName(number)}))
				if IsEnding(arrived) && ending == nil {
					ending = time.After(c.Times.End)
				}
			}
		}
	}()
	return func() { close(done) }, ended
}

// IsEnding returns whether the signal asks a program to end.
func IsEnding(signal os.Signal) bool {
	return signal == syscall.SIGTERM || signal == syscall.SIGINT || signal == syscall.SIGHUP || signal == syscall.SIGQUIT
}

// answer takes the name of the node, and refuses everything else.
func answer(requests <-chan *ssh.Request, told chan<- string) {
	for request := range requests {
		if request.Type == wire.Node && len(request.Payload) > 0 {
			select {
			case told <- string(request.Payload):
			default:
			}
		}
		if request.WantReply {
			_ = request.Reply(false, nil)
		}
	}
}
