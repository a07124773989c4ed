package server

import (
	"math"
	"os"
	"sync"
	"syscall"
	"time"

	"mpiop/agent/internal/greeting"
)

// Limits are those of connections that have not logged in.
type Limits struct {
	// Silent is how many are kept that have sent no line yet, and how many with a proof. Those have little more than a descriptor, and
	// of these a large job may have a thousand at once.
	Silent int
	// Strangers is how many are kept that have sent one without a proof.
	Strangers int
}

const (
	mostSilent, mostStrangers = 1024, 128
	leastStrangers            = 8
	// A stranger in a handshake may have two packets of `beforeLogin`, and what x/crypto has for each connection.
	strangerBytes = 128 << 10
	// ofMemory is the share of the container's memory that strangers may have.
	ofMemory = 8
	// ofDescriptors is the share of the descriptors that all of these may have; the others are for commands.
	ofDescriptors = 4
	// forEachStranger is how many connections Limits has for each stranger: silent ones, as many with a proof, and itself.
	forEachStranger = 2*mostSilent/mostStrangers + 1

	// A key exchange and a signature cost 0.6 ms of one core, so strangers take about 1 % of it.
	turnsPerSecond = 20
	remembered     = 1 << 14
	placesOfSilent = 3
)

// Descriptors returns how many this process may have, once Go has raised the soft limit to the hard one; 0 if that is unknown.
func Descriptors() int64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int64(min(limit.Cur, math.MaxInt64))
}

// LimitsFor returns what fits into a container with so many bytes of memory, which it shares with ranks, and a process with so many
// descriptors; 0 stands for no limit.
func LimitsFor(memory, descriptors int64) Limits {
	strangers := int64(mostStrangers)
	if memory > 0 {
		strangers = min(strangers, memory/ofMemory/strangerBytes)
	}
	if descriptors > 0 {
		strangers = min(strangers, descriptors/ofDescriptors/forEachStranger)
	}
	strangers = max(leastStrangers, strangers)
	return Limits{Silent: int(strangers) * (mostSilent / mostStrangers), Strangers: int(strangers)}
}

// admission says when a client may begin its handshake, which is what costs time and memory. One whose first line proves that it has
// the job's key begins at once. All others, strangers, take turns. Their addresses do not matter, because a service mesh may give
// one address to all connections, the job's own and theirs.
type admission struct {
	secret    []byte
	silent    *pending
	strangers *pending
	// proven are members, which log in at once, unless a proof is somebody else's who got it from a member.
	proven *pending
	turns  chan struct{}
	seen   seen
	// places bounds all connections that have not logged in, with members and with those that are being closed.
	places chan struct{}
}

func newAdmission(secret []byte, limits Limits) *admission {
	made := &admission{
		secret: secret, silent: newPending(limits.Silent), strangers: newPending(limits.Strangers), proven: newPending(limits.Silent),
		turns: make(chan struct{}, turnsPerSecond), seen: seen{known: map[greeting.Nonce]struct{}{}},
		places: make(chan struct{}, placesOfSilent*limits.Silent),
	}
	for range turnsPerSecond {
		made.turns <- struct{}{}
	}
	return made
}

// giveTurns works until it is done. Turns that nobody takes are kept for a second.
func (a *admission) giveTurns(done <-chan struct{}) {
	ticker := time.NewTicker(time.Second / turnsPerSecond)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
		}
		select {
		case a.turns <- struct{}{}:
		default:
		}
	}
}

// enter takes a connection that has just been made, which has to log in until the end.
func (a *admission) enter(arrived *guard, end time.Time) {
	a.places <- struct{}{}
	waiting := a.silent.add(arrived)
	arrived.leave = func() { a.silent.remove(waiting) }
	arrived.admit = func(line string) error {
		arrived.leave()
		if nonce, isProven := greeting.Read(a.secret, line); isProven && a.seen.add(nonce) {
			waiting := a.proven.add(arrived)
			arrived.leave = func() { a.proven.remove(waiting) }
			return nil
		}
		waiting := a.strangers.add(arrived)
		arrived.leave = func() { a.strangers.remove(waiting) }
		return a.waitForTurn(arrived, end)
	}
}

// exit takes one that has logged in, or was closed.
func (a *admission) exit(arrived *guard) {
	arrived.leave()
	<-a.places
}

func (a *admission) waitForTurn(stranger *guard, end time.Time) error {
	timer := time.NewTimer(time.Until(end))
	defer timer.Stop()
	select {
	case <-a.turns:
		return nil
	case <-stranger.closed:
		return errTakenOver
	case <-timer.C:
		return os.ErrDeadlineExceeded
	}
}

// seen are the nonces of proofs that were used: who records one on the network cannot use it again here.
type seen struct {
	mutex sync.Mutex
	known map[greeting.Nonce]struct{}
	order []greeting.Nonce
	next  int
}

// add returns whether the nonce is new. It forgets the oldest one when there are too many.
func (s *seen) add(nonce greeting.Nonce) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if _, isKnown := s.known[nonce]; isKnown {
		return false
	}
	s.known[nonce] = struct{}{}
	if len(s.order) < remembered {
		s.order = append(s.order, nonce)
		return true
	}
	delete(s.known, s.order[s.next])
	s.order[s.next] = nonce
	s.next = (s.next + 1) % remembered
	return true
}
