package server

import (
	"fmt"
	"sync"
	"time"
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

// repeated is an error that may occur many times in a second, for example when no descriptor is free.
type repeated struct {
	mutex  sync.Mutex
	said   time.Time
	unsaid int
}

// add returns the line to write, "" if there was one less than a period ago.
func (r *repeated) add(what string, err error, now time.Time, period time.Duration) string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.said.IsZero() && now.Sub(r.said) < period {
		r.unsaid++
		return ""
	}
	line := fmt.Sprintf("%s: %v", what, err)
	if r.unsaid > 0 {
		line += fmt.Sprintf("; %d times more since the last such line", r.unsaid)
	}
	r.said, r.unsaid = now, 0
	return line
}
