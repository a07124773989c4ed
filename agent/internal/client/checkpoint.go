package client

import (
	"context"
	"fmt"

	"mpiop/agent/internal/hosts"
	"mpiop/agent/internal/wire"
)

// Checkpoint asks the host to send the checkpoint signal to its ranks, and returns whether any was sent. After an error nobody knows:
// a worker whose Pod ends too has asked its ranks itself, and may be gone.
func (c *Client) Checkpoint(ctx context.Context) (bool, error) {
	address := c.Arguments.Host
	if index := c.toldIndex(); index != "" {
		told, byName := c.Addresses.Find(index)
		if told == hosts.Ended || c.Addresses.AreEmpty() {
			return false, nil // mpirun cannot reach it
		}
		if told == "" && !byName {
			return false, c.lost("it has no address any more: its Pod ends, or is made again")
		}
		if told != "" {
			address = told
		}
	}
	connection, err := c.logIn(ctx, address)
	if err != nil {
		return false, c.lost(fmt.Sprintf("cannot ask its ranks to save their work: %v", err))
	}
	defer connection.Close()
	// A host that is silent does not answer.
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	done, _, err := connection.SendRequest(wire.Checkpoint, true, nil)
	if err != nil {
		return false, fmt.Errorf("%s does not answer: %w", c.Arguments.Host, err)
	}
	return done, nil
}
