package server

import (
	"container/list"
	"net"
	"sync"
)

// pending are connections that have not logged in. There are at most `limit`: one more closes the oldest of those addresses that have
// the most, so that a flood closes its own connections, not those of the job. If each address has one connection, it closes the oldest,
// and the job's own, which do not wait, are not the oldest.
type pending struct {
	mutex    sync.Mutex
	limit    int
	entries  *list.List // of entry, the oldest first
	bySource map[string]int
}

type entry struct {
	source     string
	connection net.Conn
}

func newPending(limit int) *pending {
	return &pending{limit: limit, entries: list.New(), bySource: map[string]int{}}
}

func (p *pending) add(connection net.Conn) *list.Element {
	source := sourceOf(connection)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.entries.Len() >= p.limit {
		p.drop()
	}
	p.bySource[source]++
	return p.entries.PushBack(entry{source, connection})
}

func (p *pending) drop() {
	most := 0
	for _, count := range p.bySource {
		most = max(most, count)
	}
	for element := p.entries.Front(); element != nil; element = element.Next() {
		if found := element.Value.(entry); p.bySource[found.source] == most {
			_ = found.connection.Close()
			p.forget(element)
			return
		}
	}
}

func (p *pending) remove(element *list.Element) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.forget(element)
}

// forget does nothing for an element that was dropped.
func (p *pending) forget(element *list.Element) {
	before := p.entries.Len()
	found := p.entries.Remove(element).(entry)
	if p.entries.Len() == before {
		return
	}
	if p.bySource[found.source]--; p.bySource[found.source] == 0 {
		delete(p.bySource, found.source)
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
