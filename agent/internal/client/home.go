package client

import (
	"cmp"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"mpiop/agent/internal/wire"
)

// drainTime is how long what a daemon said last may take to mpirun.
const drainTime = 5 * time.Second

const mostSignals = 64

// homeOf finds where a daemon of Open MPI 5 is to connect to: `prte_hnp_uri "name;tcp://10.0.0.1,10.0.0.2:40000:24,24"`.
var homeOf = regexp.MustCompile(`prte_hnp_uri "?[^";]*;(tcp://([0-9.,]+):([0-9]+):([0-9]+)[0-9,]*)`)

// home brings a daemon's connections to mpirun through ours. When the daemon or its host is lost, mpirun must not see that its connection
// ends: it would exit at once, and with 0 (PRRTE 3.0). So it is ended before.
type home struct {
	mpirun  string
	lost    func(error)
	settled chan struct{} // closed when it is known how the daemon ended, and mpirun has ended if it has to
	once    sync.Once
	open    sync.WaitGroup

	mutex   sync.Mutex
	awaited map[*net.TCPConn]struct{} // the connections that mpirun has not closed
	closed  bool                      // no more of them are brought: keep has been called
}

// openHome returns the command that connects to mpirun through us, and nil if it is to connect as it is.
func (c *Client) openHome(connection *connection) (string, *home) {
	found := homeOf.FindStringSubmatch(c.Arguments.Command)
	if c.Lost == nil || found == nil {
		return c.Arguments.Command, nil
	}
	ip, err := wire.IPOf(connection.RemoteAddr())
	ours, failed := wire.IPOf(connection.LocalAddr())
	// Daemons may use another network than we do; then they do not find a port of this one.
	if err != nil || failed != nil || ip.To4() == nil || !slices.Contains(strings.Split(found[2], ","), ours.String()) {
		return c.Arguments.Command, nil
	}
	done, answer, err := connection.SendRequest(wire.Home, true, ssh.Marshal(wire.HomeAt{IP: ip.String()}))
	var given wire.HomePort
	if err != nil || !done || ssh.Unmarshal(answer, &given) != nil {
		return c.Arguments.Command, nil // an sshd of an image
	}
	opened := &home{
		mpirun: net.JoinHostPort(ours.String(), found[3]), lost: c.Lost, settled: make(chan struct{}), awaited: map[*net.TCPConn]struct{}{},
	}
	connection.home.Store(opened)
	through := "tcp://" + ip.String() + ":" + strconv.Itoa(int(given.Port)) + ":" + found[4]
	return strings.ReplaceAll(c.Arguments.Command, found[1], through), opened
}

// settle ends mpirun if there is an error, with which the daemon is lost. Without a home it does nothing.
func (h *home) settle(err error) {
	if h == nil {
		return
	}
	h.once.Do(func() {
		if err != nil {
			h.lost(err)
		}
		close(h.settled)
	})
}

// keep lets hold have copies of the connections that mpirun has not closed, and returns whether there are any. A connection that the
// daemon made just before it ended may not have arrived yet; then mpirun never hears of it.
func (h *home) keep(hold func(descriptors []uintptr) error) (kept bool, err error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.closed = true
	var copies []uintptr
	defer func() {
		for _, each := range copies {
			_ = syscall.Close(int(each))
		}
	}()
	for connection := range h.awaited {
		raw, err := connection.SyscallConn()
		if err != nil {
			return false, err
		}
		var copied int
		var failed error
		err = raw.Control(func(descriptor uintptr) { copied, failed = syscall.Dup(int(descriptor)) })
		if err := cmp.Or(err, failed); err != nil {
			return false, err
		}
		copies = append(copies, uintptr(copied))
	}
	if len(copies) == 0 {
		return false, nil
	}
	return true, hold(copies)
}

// wasKilled returns whether a signal ended the command.
func wasKilled(code int) bool { return code > bySignal && code <= bySignal+mostSignals }

// drain returns when mpirun has what daemons have said.
func (h *home) drain() {
	done := make(chan struct{})
	go func() {
		h.open.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(drainTime):
	}
}

// serveChannels takes connections of the daemon, if they are expected, and nothing else.
func serveChannels(channels <-chan ssh.NewChannel, expected func() *home) {
	for offered := range channels {
		opened := expected()
		if opened == nil || offered.ChannelType() != wire.Home {
			_ = offered.Reject(ssh.Prohibited, "a client serves nothing")
			continue
		}
		opened.open.Add(1)
		go opened.bring(offered)
	}
}

func (h *home) bring(offered ssh.NewChannel) {
	defer h.open.Done()
	mpirun, err := net.Dial("tcp", h.mpirun)
	if err != nil {
		_ = offered.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	awaited := &awaited{mpirun.(*net.TCPConn), h}
	if !h.await(awaited) {
		_ = mpirun.Close()
		_ = offered.Reject(ssh.Prohibited, "the daemon has ended")
		return
	}
	channel, requests, err := offered.Accept()
	if err != nil {
		_ = mpirun.Close()
		return
	}
	go ssh.DiscardRequests(requests)
	wire.Join(channel, awaited, func() { <-h.settled })
}

// await notes a connection to mpirun, unless it comes too late to be kept.
func (h *home) await(connection *awaited) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if !h.closed {
		h.awaited[connection.TCPConn] = struct{}{}
	}
	return !h.closed
}

// awaited is a connection to mpirun. One goroutine reads it, until mpirun closes it.
type awaited struct {
	*net.TCPConn
	home *home
}

// Read reads, and notes the end.
func (a *awaited) Read(buffer []byte) (int, error) {
	n, err := a.TCPConn.Read(buffer)
	if err != nil {
		a.home.mutex.Lock()
		delete(a.home.awaited, a.TCPConn)
		a.home.mutex.Unlock()
	}
	return n, err
}

// WriteTo is not that of TCPConn, which would not note the end.
func (a *awaited) WriteTo(to io.Writer) (int64, error) {
	return io.Copy(to, struct{ io.Reader }{a})
}
