package wire

import (
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// Heard is a connection that knows how often something arrived on it.
type Heard struct {
	net.Conn
	count atomic.Uint64
}

// Read reads, and counts.
func (h *Heard) Read(buffer []byte) (int, error) {
	n, err := h.Conn.Read(buffer)
	if n > 0 {
		h.count.Add(1)
	}
	return n, err
}

// Watch asks the other side to answer, once an interval, and closes the connection when nothing at all came from it for
// `silent` intervals. It counts intervals, not time: who was stopped himself must not take the other side for lost.
//
// Watch returns when the connection is closed, whether it was Watch that closed it or not.
func Watch(connection ssh.Conn, heard *Heard, interval time.Duration, silent int) (lost bool) {
	closed := make(chan struct{})
	go func() {
		_ = connection.Wait()
		close(closed)
	}()
	// A request waits for its answer, so it has a goroutine of its own.
	ask := make(chan struct{}, 1)
	defer close(ask)
	go func() {
		for range ask {
			if _, _, err := connection.SendRequest(KeepAlive, true, nil); err != nil {
				return
			}
		}
	}()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	before, quiet := heard.count.Load(), 0
	for {
		select {
		case <-closed:
			return false
		case <-ticker.C:
		}
		select {
		case ask <- struct{}{}:
		default:
		}
		now := heard.count.Load()
		if now != before {
			before, quiet = now, 0
			continue
		}
		if quiet++; quiet >= silent {
			_ = heard.Close()
			return true
		}
	}
}
