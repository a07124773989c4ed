package wire

import (
	"errors"
	"io"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"
)

const (
	// Home is the global request by which a client asks for a port of its server's. Each connection to that comes back to the client as a
	// channel of the same type. A daemon of Open MPI 5 connects to mpirun by it.
	Home = "home@mpiop.kubeflow.org"
	// Ended is a session's request: the command itself has ended, though what it started may not have yet.
	Ended = "ended@mpiop.kubeflow.org"
)

// HomeAt asks for a port at the address at which the client knows the server. A proxy between both may show the server another.
type HomeAt struct{ IP string }

// HomePort answers Home.
type HomePort struct{ Port uint32 }

// ErrNotTCP says that an address has no port.
var ErrNotTCP = errors.New("not a TCP address")

// IPOf returns the IP of a TCP address.
func IPOf(address net.Addr) (net.IP, error) {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return nil, ErrNotTCP
	}
	return tcp.IP, nil
}

// Join copies between both until the channel ends. Before the connection is closed then, it calls atEnd.
func Join(channel ssh.Channel, connection net.Conn, atEnd func()) {
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(channel, connection)
		_ = channel.CloseWrite()
	})
	_, _ = io.Copy(connection, channel)
	atEnd()
	_ = connection.Close()
	both.Wait()
	_ = channel.Close()
}
