package server

import (
	"container/list"
	"net"
	"sync"
)

// pending are connections that have not logged in. There are at most `limit`: one more closes the oldest of the address that has
// the most, so that a flood closes its own connections, not those of the job.
type pending struct {
	mutex    sync.Mutex
	limit    int
	count    int
	bySource map[string]*list.List
}

// entry is what remove needs.
type entry struct {
	source  string
	element *list.Element
}

func newPending(limit int) *pending {
	return &pending{limit: limit, bySource: map[string]*list.List{}}
}

func (p *pending) add(connection net.Conn) entry {
	source := sourceOf(connection)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.count >= p.limit {
		p.drop()
	}
	connections, found := p.bySource[source]
	if !found {
		connections = list.New()
		p.bySource[source] = connections
	}
	p.count++
	return entry{source, connections.PushBack(connection)}
}

func (p *pending) drop() {
	var heaviest string
	most := 0
	for source, connections := range p.bySource {
		if connections.Len() > most {
			heaviest, most = source, connections.Len()
		}
	}
	oldest := p.bySource[heaviest].Front()
	_ = oldest.Value.(net.Conn).Close()
	p.forget(entry{heaviest, oldest})
}

func (p *pending) remove(e entry) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.forget(e)
}

// forget does nothing for an entry that was dropped.
func (p *pending) forget(e entry) {
	connections, found := p.bySource[e.source]
	if !found {
		return
	}
	before := connections.Len()
	connections.Remove(e.element)
	p.count -= before - connections.Len()
	if connections.Len() == 0 {
		delete(p.bySource, e.source)
	}
}

// sourceOf returns the address without its port.
func sourceOf(connection net.Conn) string {
	source, _, err := net.SplitHostPort(connection.RemoteAddr().String())
	if err != nil {
		return connection.RemoteAddr().String()
	}
	return source
}
