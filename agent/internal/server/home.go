package server

import (
	"errors"
	"net"

	"golang.org/x/crypto/ssh"

	"mpiop/agent/internal/wire"
)

// mostHome is how many connections at once a client is brought by its port. Daemons that the one of this host has started use it too.
const mostHome = 256

var errOtherAddress = errors.New("the client knows this host by another address")

// listenHome returns a listener for connections that are brought to the client, at the address at which the client knows us.
func listenHome(connection ssh.Conn, asked []byte) (*net.TCPListener, error) {
	ip, err := wire.IPOf(connection.LocalAddr())
	if err != nil {
		return nil, err
	}
	var known wire.HomeAt
	if err := ssh.Unmarshal(asked, &known); err != nil || !ip.Equal(net.ParseIP(known.IP)) {
		return nil, errOtherAddress
	}
	return net.ListenTCP("tcp", &net.TCPAddr{IP: ip})
}

// bringHome returns when the listener is closed.
func bringHome(connection ssh.Conn, listener net.Listener) {
	places := make(chan struct{}, mostHome)
	for {
		arrived, err := listener.Accept()
		if err != nil {
			return
		}
		select {
		case places <- struct{}{}:
		default:
			_ = arrived.Close()
			continue
		}
		go func() {
			defer func() { <-places }()
			channel, requests, err := connection.OpenChannel(wire.Home, nil)
			if err != nil {
				_ = arrived.Close()
				return
			}
			go ssh.DiscardRequests(requests)
			wire.Join(channel, arrived, func() {})
		}()
	}
}

// answerHome answers one request for a port; a connection has one at most.
func (s *Server) answerHome(connection ssh.Conn, request *ssh.Request) {
	listener, err := listenHome(connection, request.Payload)
	if err != nil {
		s.Say("no port for a daemon: %v", err)
		_ = request.Reply(false, nil)
		return
	}
	go func() {
		_ = connection.Wait()
		_ = listener.Close()
	}()
	go bringHome(connection, listener)
	port := listener.Addr().(*net.TCPAddr).Port
	_ = request.Reply(true, ssh.Marshal(wire.HomePort{Port: uint32(port)}))
}
