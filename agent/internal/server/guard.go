package server

import (
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// beforeLogin is how many bytes a client may send or announce before it has logged in: the largest packet that RFC 4253 (6.1) wants
	// to be accepted. Ours sends less than 5,000. x/crypto makes a buffer of the announced length, up to 262,144, before it reads.
	beforeLogin = 35_000
	// longestLine is that of RFC 4253, 4.2.
	longestLine = 255

	newKeys    = 21 // SSH_MSG_NEWKEYS
	lengthSize = 4
	typeAt     = 5 // after the lengths of the packet and of its padding
	tagSize    = 16
)

var (
	errTooMuch   = errors.New("it sent too much before its login")
	errNotSSH    = errors.New("it does not speak SSH")
	errRepeated  = errors.New("it asked for a second key exchange before its login")
	errTakenOver = errors.New("more connections arrived")
)

// guard is the connection of a client that has not logged in. It reads the lengths of packets along with x/crypto, which is possible
// because no cipher of the server encrypts them (RFC 5647, 7.3), and lets no length through that is too large.
type guard struct {
	net.Conn
	// admit is called with the first line; the handshake begins when it returns.
	admit func(line string) error
	// leave makes room for another connection.
	leave  func()
	closed chan struct{}
	close  sync.Once

	isIn      atomic.Bool // it has logged in; nothing is limited any more
	hasSent   atomic.Bool
	otherKey  bool // it offered another key than the job's
	exchanges int  // of keys; one goroutine of x/crypto counts them

	left    int // of beforeLogin
	line    strings.Builder
	isLine  bool // the first line has arrived
	head    []byte
	rest    int  // bytes of this packet that have not arrived
	isKeyed bool // packets are encrypted, but for their length
}

func newGuard(raw net.Conn) *guard {
	return &guard{Conn: raw, closed: make(chan struct{}), left: beforeLogin, leave: func() {}}
}

// Read passes on what the client may send.
func (g *guard) Read(buffer []byte) (int, error) {
	n, err := g.Conn.Read(buffer)
	if g.isIn.Load() || n == 0 {
		return n, err
	}
	g.hasSent.Store(true)
	if refused := g.check(buffer[:n]); refused != nil {
		return 0, refused
	}
	return n, err
}

// Close may be called more than once.
func (g *guard) Close() error {
	g.close.Do(func() { close(g.closed) })
	return g.Conn.Close()
}

// exchange returns an error if the client may not ask for a key exchange now.
func (g *guard) exchange() error {
	if g.exchanges++; g.exchanges > 1 && !g.isIn.Load() {
		return errRepeated
	}
	return nil
}

func (g *guard) check(text []byte) error {
	for len(text) > 0 {
		if !g.isLine {
			if err := g.addToLine(text[0]); err != nil {
				return err
			}
			text = text[1:]
			continue
		}
		if g.rest > 0 {
			passed := min(g.rest, len(text))
			g.rest -= passed
			text = text[passed:]
			continue
		}
		g.head = append(g.head, text[0])
		text = text[1:]
		if err := g.readHead(); err != nil {
			return err
		}
	}
	return nil
}

// addToLine takes the client's first line. Only a server may send others before it.
func (g *guard) addToLine(letter byte) error {
	if letter != '\n' {
		g.line.WriteByte(letter)
		if g.line.Len() > longestLine {
			return errNotSSH
		}
		return nil
	}
	g.isLine = true
	g.left -= g.line.Len() + 1
	if !strings.HasPrefix(g.line.String(), "SSH-2.0-") {
		return errNotSSH
	}
	return g.admit(g.line.String())
}

// readHead looks at a packet as soon as its length is known, and that of an unencrypted one again when its type is.
func (g *guard) readHead() error {
	if len(g.head) < lengthSize {
		return nil
	}
	length, tag := int64(binary.BigEndian.Uint32(g.head)), 0
	if g.isKeyed {
		tag = tagSize
	}
	if length+lengthSize+int64(tag) > int64(g.left) {
		return errTooMuch
	}
	if length <= typeAt-lengthSize {
		return errNotSSH
	}
	if !g.isKeyed {
		if len(g.head) <= typeAt {
			return nil
		}
		g.isKeyed = g.head[typeAt] == newKeys
	}
	whole := lengthSize + int(length) + tag
	g.rest = whole - len(g.head)
	g.left -= whole
	g.head = g.head[:0]
	return nil
}
