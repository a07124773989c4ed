package client

import (
	"context"
	"fmt"

	"mpiop/agent/internal/hosts"
	"mpiop/agent/internal/wire"
)

// Checkpoint asks the host to send the checkpoint signal to its ranks, and returns whether any was sent.
func (c *Client) Checkpoint(ctx context.Context) (bool, error) {
	address := c.Arguments.Host
	if index := c.toldIndex(); index != "" {
		told, byName := c.Addresses.Find(index)
		if told == hosts.Ended || told == "" && !byName {
			return false, nil // mpirun has not reached it
		}
		if told != "" {
			address = told
		}
	}
	connection, err := c.try(ctx, address)
	if err != nil {
		return false, err
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
