package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"mpiop/agent/internal/greeting"
	"mpiop/agent/internal/testkit"
)

// caller is a connection from an address.
type caller struct {
	net.Conn
	address  string
	isClosed bool
	exit     func()
}

func (c *caller) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(c.address), Port: 7}
}

func (c *caller) Close() error {
	c.isClosed = true
	if c.exit != nil {
		go c.exit()
	}
	return nil
}

var testSecret = []byte("secret")

func arrive(a *admission, address string, within time.Duration) (*guard, *caller) {
	from := &caller{address: address}
	arrived := newGuard(from)
	a.enter(arrived, time.Now().Add(within))
	return arrived, from
}

func TestAProofOfTheKeyNeedsNoTurn(t *testing.T) {
	a := newAdmission(testSecret, LimitsFor(0, 0))
	for range turnsPerSecond {
		stranger, _ := arrive(a, "10.0.0.1", time.Second)
		if err := stranger.admit("SSH-2.0-x"); err != nil {
			t.Errorf("a turn that was kept: %v", err)
		}
	}
	line := greeting.New(testSecret)
	for name, row := range map[string]struct {
		line string
		want error
	}{
		"a member":           {greeting.New(testSecret), nil},
		"another job's":      {greeting.New([]byte("another")), os.ErrDeadlineExceeded},
		"no proof":           {"SSH-2.0-mpiop", os.ErrDeadlineExceeded},
		"before it is known": {line, nil},
	} {
		arrived, _ := arrive(a, "10.0.0.1", 50*time.Millisecond)
		if err := arrived.admit(row.line); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v", name, err)
		}
		a.exit(arrived)
	}
	again, _ := arrive(a, "10.0.0.2", 50*time.Millisecond)
	if err := again.admit(line); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a proof that was recorded and sent again: got %v", err)
	}
	done := make(chan struct{})
	go a.giveTurns(done)
	patient, _ := arrive(a, "10.0.0.2", 10*time.Second)
	if err := patient.admit("SSH-2.0-x"); err != nil {
		t.Errorf("a stranger who waits: %v", err)
	}
	close(done)
}

func TestAFloodClosesItsOwnConnections(t *testing.T) {
	a := newAdmission(testSecret, Limits{Silent: 4, Strangers: 4})
	_, theirs := arrive(a, "10.0.0.1", time.Second)
	var flood []*caller
	for range 4 { // all places are taken then, but those of connections that have ended
		_, one := arrive(a, "10.0.0.2", time.Second)
		flood = append(flood, one)
	}
	if theirs.isClosed || !flood[0].isClosed || flood[1].isClosed {
		t.Errorf("closed: %v, %v, %v", theirs.isClosed, flood[0].isClosed, flood[1].isClosed)
	}
}

func TestAFloodFromManyAddressesClosesTheOldest(t *testing.T) {
	a := newAdmission(testSecret, Limits{Silent: 4, Strangers: 4})
	var flood []*caller
	for from := range 11 { // all places are taken then, but one
		_, one := arrive(a, fmt.Sprintf("10.0.0.%d", from), time.Second)
		flood = append(flood, one)
	}
	for from, one := range flood {
		if one.isClosed != (from < 7) {
			t.Errorf("connection %d is closed: %v", from, one.isClosed)
		}
	}
}

func TestWhoWaitsForATurnIsClosedByAFlood(t *testing.T) {
	a := newAdmission(testSecret, Limits{Silent: 4, Strangers: 1})
	for range turnsPerSecond {
		<-a.turns
	}
	waiting, _ := arrive(a, "10.0.0.2", time.Minute)
	result := make(chan error, 1)
	go func() { result <- waiting.admit("SSH-2.0-x") }()
	testkit.Eventually(t, "it waits", func() bool {
		a.strangers.mutex.Lock()
		defer a.strangers.mutex.Unlock()
		return a.strangers.entries.Len() == 1
	})
	next, _ := arrive(a, "10.0.0.2", 0)
	_ = next.admit("SSH-2.0-x")
	if err := <-result; !errors.Is(err, errTakenOver) {
		t.Errorf("got %v", err)
	}
}

func TestProofsThatSomebodyCollectedHoldNoPlaces(t *testing.T) {
	limits := Limits{Silent: 4, Strangers: 2}
	a := newAdmission(testSecret, limits)
	for range 10 * limits.Silent {
		arrived, one := arrive(a, "10.0.0.2", time.Minute)
		if err := arrived.admit(greeting.New(testSecret)); err != nil {
			t.Fatal(err)
		}
		one.exit = func() { a.exit(arrived) } // the server's handshake fails then
	}
	member, theirs := arrive(a, "10.0.0.1", time.Minute)
	if err := member.admit(greeting.New(testSecret)); err != nil || theirs.isClosed {
		t.Errorf("a member: %v, closed: %v", err, theirs.isClosed)
	}
	kept := func() int {
		a.proven.mutex.Lock()
		defer a.proven.mutex.Unlock()
		return a.proven.entries.Len()
	}
	if kept() != limits.Silent {
		t.Errorf("%d are kept", kept())
	}
	a.exit(member)
	if kept() != limits.Silent-1 {
		t.Errorf("%d are kept", kept())
	}
}

func TestAnErrorThatIsRepeatedIsOneLineInAPeriod(t *testing.T) {
	var found []string
	var kind repeated
	start := time.Now()
	for at := range 2400 { // 20 in a second
		if line := kind.add("cannot", errTooMuch, start.Add(time.Duration(at)*50*time.Millisecond), time.Minute); line != "" {
			found = append(found, line)
		}
	}
	want := []string{"cannot: " + errTooMuch.Error(), "cannot: " + errTooMuch.Error() + "; 1199 times more since the last such line"}
	if !slices.Equal(found, want) {
		t.Errorf("got %q", found)
	}
}

func TestOldProofsAreForgotten(t *testing.T) {
	kept := seen{known: map[greeting.Nonce]struct{}{}}
	for at := range remembered + 2 {
		if !kept.add(greeting.Nonce{byte(at), byte(at >> 8), byte(at >> 16)}) {
			t.Fatalf("%d is known", at)
		}
	}
	if len(kept.known) != remembered || len(kept.order) != remembered || kept.add(greeting.Nonce{2}) || !kept.add(greeting.Nonce{1}) {
		t.Errorf("%d and %d are kept", len(kept.known), len(kept.order))
	}
}

func TestWhatFitsIntoAContainer(t *testing.T) {
	for memory, want := range map[int64]Limits{
		0: {1024, 128}, 64 << 30: {1024, 128}, 256 << 20: {1024, 128}, 64 << 20: {512, 64}, 16 << 20: {128, 16}, 1 << 20: {64, 8},
	} {
		if got := LimitsFor(memory, 0); got != want {
			t.Errorf("%d MiB: got %v", memory>>20, got)
		}
	}
	for descriptors, want := range map[int64]Limits{1 << 20: {1024, 128}, 8704: {1024, 128}, 1024: {120, 15}, 16: {64, 8}} {
		if got := LimitsFor(0, descriptors); got != want {
			t.Errorf("%d descriptors: got %v", descriptors, got)
		}
	}
	if got := LimitsFor(64<<20, 1024); got != (Limits{120, 15}) {
		t.Errorf("the smaller one counts: got %v", got)
	}
	if got := Descriptors(); got <= 0 {
		t.Errorf("got %d descriptors", got)
	}
}
