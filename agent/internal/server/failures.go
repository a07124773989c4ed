package server

import (
	"fmt"
	"sync"
)

// failures counts the connections that did not log in. They are reported together: there may be thousands in a second.
type failures struct {
	mutex    sync.Mutex
	all      int
	otherKey int
	bySource map[string]int
}

const mostSources = 1024

func (f *failures) add(failed *guard) {
	source := sourceOf(failed)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.all++
	if failed.otherKey {
		f.otherKey++
	}
	if _, isKnown := f.bySource[source]; isKnown || len(f.bySource) < mostSources {
		f.bySource[source]++
	}
}

// take returns a line about all since the last one, "" if there are none.
func (f *failures) take() string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.all == 0 {
		return ""
	}
	var heaviest string
	for source, count := range f.bySource {
		if count > f.bySource[heaviest] {
			heaviest = source
		}
	}
	line := fmt.Sprintf("failed logins: %d, of which %d offered another key; %d came from %s", f.all, f.otherKey, f.bySource[heaviest], heaviest)
	f.all, f.otherKey = 0, 0
	clear(f.bySource)
	return line
}
