// Package client is what mpirun calls in the place of ssh: it waits for its host, runs a command there, and passes everything on.
package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/user"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"mpiop/agent/internal/arguments"
	"mpiop/agent/internal/greeting"
	"mpiop/agent/internal/hosts"
	"mpiop/agent/internal/key"
	"mpiop/agent/internal/wire"
)

// Client runs one command on one host.
type Client struct {
	Arguments arguments.Arguments
	Job       hosts.Job
	// Addresses is where the operator tells addresses; without a path, as on a worker, hosts are asked for by name.
	Addresses hosts.Addresses
	Key       key.Key
	Port      int
	// Say writes a line for people.
	Say func(format string, values ...any)
	// Times is how long things may take.
	Times Times

	Input         io.Reader
	Output, Error io.Writer
	// Signals are passed on to the command.
	Signals <-chan os.Signal
	// Lost says the error and ends mpirun, if that is one that would take the loss of a daemon for a success; else nil.
	Lost func(error)
	// Hold keeps connections to mpirun open until mpirun has the exit code of this process. It is needed with Lost.
	Hold func(descriptors []uintptr) error

	node string
}

// Times are durations of one client.
type Times struct {
	// Poll is the pause between two looks for an address; Words that between two lines of the log about it.
	Poll, Words time.Duration
	// ByName is how long the client waits for an address before it asks for the name, and NextName the pause between two such
	// questions: a name server remembers for up to 30 s that it knew no such name.
	ByName, NextName time.Duration
	// Connect is how long the client tries to connect, Retry the pause between two attempts, Dial how long one may take.
	Connect, Retry, Dial time.Duration
	// Interval is the time between two keep-alives.
	Interval time.Duration
	// End is how long a command may run on after a signal that ends programs.
	End time.Duration
}

// DefaultTimes are those of a job.
func DefaultTimes() Times {
	return Times{
		Poll: 100 * time.Millisecond, Words: 10 * time.Second, ByName: 60 * time.Second, NextName: 35 * time.Second,
		Connect: 60 * time.Second, Retry: 200 * time.Millisecond, Dial: 5 * time.Second,
		Interval: wire.Interval, End: 10 * time.Second,
	}
}

// LostError says that the host cannot be had or was lost, or that what it said cannot be written.
type LostError struct {
	Reason string
	// Ended says that the connection was ended while the command ran: mpirun's own connections to that host end now too.
	Ended bool
}

func (e *LostError) Error() string { return e.Reason }

// A program that a signal ended has this and the number as its exit code, for a shell.
const bySignal = 128

var errNotMember = errors.New("who answers there is not of this job: it does not have the job's key")

// Run returns the exit code of the command. A LostError says why there is none.
func (c *Client) Run() (int, error) {
	connection, signal, err := c.reach()
	if signal != nil {
		number, _ := signal.(syscall.Signal)
		return bySignal + int(number), nil
	}
	if err != nil {
		return wire.Lost, err
	}
	defer connection.Close()
	return c.run(connection)
}

// reach waits for the host and connects to it, unless a signal that ends programs arrives before.
func (c *Client) reach() (made *connection, ending os.Signal, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		address, failed := c.find(ctx)
		if err = failed; err == nil {
			made, err = c.connect(ctx, address)
		}
	}()
	for {
		select {
		case <-done:
			return made, ending, err
		case arrived := <-c.Signals:
			if IsEnding(arrived) {
				ending = arrived
				cancel()
			}
		}
	}
}

// toldIndex returns the index of a worker whose address the operator tells; "" for a host that is asked for by name.
func (c *Client) toldIndex() string {
	if c.Addresses.Path == "" {
		return ""
	}
	_, index := c.Job.Classify(c.Arguments.Host)
	return index
}

// find waits for the address of the host.
func (c *Client) find(ctx context.Context) (string, error) {
	index := c.toldIndex()
	if index == "" {
		return c.Arguments.Host, nil
	}
	start := time.Now()
	nextWords, nextName := start.Add(c.Times.Words), start.Add(c.Times.ByName)
	wasTold := false
	for {
		address, byName := c.Addresses.Find(index)
		if address == hosts.Ended {
			return "", c.lost("its Pod has ended and is not made again; delete the Pod to have another")
		}
		if address != "" {
			return address, nil
		}
		now := time.Now()
		if byName && !wasTold {
			wasTold, nextName = true, now
		}
		if !now.Before(nextName) {
			nextName = now.Add(c.Times.NextName)
			if c.Addresses.HaveNo(index) {
				return "", c.lost("the job has no such worker any more")
			}
			if _, err := net.DefaultResolver.LookupHost(ctx, c.Arguments.Host); err == nil {
				return c.Arguments.Host, nil
			}
		}
		if !now.Before(nextWords) {
			nextWords = now.Add(c.Times.Words)
			c.Say("waiting for %s: no address for %d s; the operator publishes it once all workers are Ready",
				c.Arguments.Host, int(now.Sub(start).Seconds()))
		}
		if err := pause(ctx, c.Times.Poll); err != nil {
			return "", err
		}
	}
}

// connect tries until the host answers: its server may be a moment later than its address.
func (c *Client) connect(ctx context.Context, address string) (*connection, error) {
	end := time.Now().Add(c.Times.Connect)
	for {
		made, err := c.try(ctx, address)
		if err == nil {
			return made, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if time.Now().After(end) {
			return nil, c.lost(fmt.Sprintf("cannot connect to %s: %v", address, err))
		}
		if err := pause(ctx, c.Times.Retry); err != nil {
			return nil, err
		}
		// A worker that was made again has another address.
		if index := c.toldIndex(); index != "" {
			if now, _ := c.Addresses.Find(index); now != "" && now != hosts.Ended {
				address = now
			}
		}
	}
}

// connection is one that logged in, with a channel for the command.
type connection struct {
	ssh.Conn
	heard    *wire.Heard
	channel  ssh.Channel
	requests <-chan *ssh.Request
	told     <-chan string
	home     *atomic.Pointer[home]
	address  string
}

func (c *Client) try(ctx context.Context, address string) (*connection, error) {
	made, err := c.logIn(ctx, address)
	if err != nil {
		return nil, err
	}
	// Until there is a channel the server may take the connection for one of a flood; no command was sent yet, so this can be tried again.
	made.channel, made.requests, err = made.OpenChannel("session", nil)
	if err != nil {
		_ = made.Close()
		return nil, err
	}
	_ = made.heard.SetDeadline(time.Time{})
	return made, nil
}

// logIn returns a connection without a channel. It ends after a time, unless its deadline is taken away.
func (c *Client) logIn(ctx context.Context, address string) (*connection, error) {
	port := c.Port
	if c.Arguments.Port != 0 {
		port = c.Arguments.Port
	}
	dialer := net.Dialer{Timeout: c.Times.Dial}
	raw, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	heard := &wire.Heard{Conn: raw}
	_ = raw.SetDeadline(time.Now().Add(wire.HandshakeTime))
	conn, channels, requests, err := ssh.NewClientConn(heard, address, c.config())
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	told := make(chan string, 1)
	go answer(requests, told)
	opened := new(atomic.Pointer[home])
	go serveChannels(channels, opened.Load)
	return &connection{Conn: conn, heard: heard, told: told, home: opened, address: address}, nil
}

// config pins the host: it has to have the job's key. An sshd of an image proves it with the key itself, ours with the derived one.
func (c *Client) config() *ssh.ClientConfig {
	member := c.Key.Member.PublicKey()
	return &ssh.ClientConfig{
		Config:            wire.Config(),
		User:              c.user(),
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(c.Key.Member)},
		HostKeyAlgorithms: wire.SignatureAlgorithms(),
		ClientVersion:     greeting.New(c.Key.Greeting),
		HostKeyCallback: func(_ string, _ net.Addr, host ssh.PublicKey) error {
			if !key.Same(host, c.Key.Host.PublicKey()) && !key.Same(host, member) {
				return errNotMember
			}
			return nil
		},
	}
}

// user is of no meaning to our server; an image's sshd knows its own user only.
func (c *Client) user() string {
	if c.Arguments.User != "" {
		return c.Arguments.User
	}
	if known, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil {
		return known.Username
	}
	return "mpi"
}

func (c *Client) lost(reason string) *LostError {
	host := c.Arguments.Host
	if c.node != "" {
		host += " on node " + c.node
	}
	return &LostError{Reason: host + ": " + reason}
}

func pause(ctx context.Context, duration time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(duration):
		return nil
	}
}
