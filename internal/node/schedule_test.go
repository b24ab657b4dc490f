package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
)

// inLane is a machine with namespaces that it shares with other, which has begun
// its turn.
func inLane(namespaces int) (m *machine, list []*Namespace) {
	m = newMachine(1)
	for i := range namespaces {
		ns := m.create(fmt.Sprint("ns", i), Policy{})
		if err := setRole(ns, idOf(other), RoleRead); err != nil {
			panic(err)
		}
		list = append(list, ns)
	}
	m.Schedule.Begin(func(ID) bool { return true })
	return m, list
}

// tries counts how often a namespace is due in so many rounds, an interval apart,
// where each try ends in the same way.
func tries(m *machine, ns *Namespace, rounds int, reached bool, result error) (n int) {
	for range rounds {
		m.clock = m.clock.Add(m.Interval)
		if m.Schedule.Due(ns.Sets()[0], idOf(other), m.clock) {
			n++
			m.Schedule.Note(ns.Sets()[0], idOf(other), m.clock, reached, result)
		}
	}
	return n
}

// Rests grow, to about eight intervals, and end with the first success. Those of
// a namespace are its own, those of a peer that is away are for all.
func TestRests(t *testing.T) {
	m, ns := inLane(5)
	if n := tries(m, ns[0], 100, true, ErrDenied); n < 8 || n > 40 {
		t.Errorf("a namespace that fails was tried %d times", n)
	}
	if n := tries(m, ns[1], 1, true, nil); n != 1 {
		t.Error("a second namespace rests with the first")
	}
	if n := tries(m, ns[1], 100, true, ErrUnreachable); n < 8 || n > 40 {
		t.Errorf("a stream that breaks was tried %d times", n)
	}
	if n := tries(m, ns[2], 1, true, nil); n != 1 {
		t.Error("a third namespace rests with one whose stream broke")
	}
	if n := tries(m, ns[2], 100, false, ErrUnreachable); n < 8 || n > 40 {
		t.Errorf("a peer that is away was tried %d times", n)
	}
	m.Schedule.Note(ns[2].Sets()[0], idOf(other), m.clock, false, ErrUnreachable)
	until := m.Schedule.lanes[idOf(other)].whole.until
	if !until.After(m.clock) || m.Schedule.Due(ns[3].Sets()[0], idOf(other), until.Add(-1)) {
		t.Error("a peer that is away was tried for another namespace")
	}
	m.clock = until
	m.Schedule.Note(ns[2].Sets()[0], idOf(other), m.clock, false, ErrDenied)
	if !m.Schedule.Due(ns[3].Sets()[0], idOf(other), m.clock) {
		t.Error("a second namespace rests with one that the peer denied before it left")
	}
	if n := tries(m, ns[3], 20, true, nil); n != 20 {
		t.Errorf("a peer that is back was tried %d times", n)
	}
	if n := tries(m, ns[3], 20, true, fmt.Errorf("cut: %w", context.Canceled)); n != 20 {
		t.Errorf("a sync that was cut off was tried %d times", n)
	}
	// The records that one side declines may never be let in, and keep no others waiting.
	if n := tries(m, ns[3], 20, true, fmt.Errorf("%w: 1 of them", ErrRejected)); n != 20 {
		t.Errorf("a sync that ran to its end and left a record declined was tried %d times", n)
	}
	// Success ends a rest at once: the next one is as short as the first.
	tries(m, ns[4], 100, true, ErrDenied)
	m.Schedule.Note(ns[4].Sets()[0], idOf(other), m.clock, true, nil)
	if !m.Schedule.Due(ns[4].Sets()[0], idOf(other), m.clock) {
		t.Error("after a success it rests")
	}
	m.Schedule.Note(ns[4].Sets()[0], idOf(other), m.clock, true, ErrDenied)
	if r := m.Schedule.lanes[idOf(other)].of[ns[4].Sets()[0].Keys.ID]; r.length != m.Interval {
		t.Errorf("after a success and a failure the rest is %s", r.length)
	}
}

// Each rest has a length between half and one and a half of the one meant, which
// begins at an interval, grows by half and stops at eight: and then it is over.
func TestRestsAreBounded(t *testing.T) {
	m, list := inLane(2)
	ns, s := list[0], m.Schedule
	s.node.Interval = time.Minute
	const meant = "1m0s 1m30s 2m15s 3m22.5s 5m3.75s 7m35.625s 8m0s 8m0s 8m0s"
	var lengths []time.Duration
	least, most := time.Duration(1<<62), time.Duration(0)
	for i := range 500 {
		s.Note(ns.Sets()[0], idOf(other), m.clock, true, errors.New("it fails"))
		r := s.lanes[idOf(other)].of[ns.Sets()[0].Keys.ID]
		if i < 9 {
			lengths = append(lengths, r.length)
		}
		rest := r.until.Sub(m.clock)
		if rest < r.length/2 || rest >= r.length*3/2 {
			t.Fatalf("rest %d, meant to be %s, is %s", i, r.length, rest)
		}
		if r.length > maxRest*time.Minute {
			t.Fatalf("rest %d is %s", i, r.length)
		}
		if i > 9 {
			least, most = min(least, rest), max(most, rest)
		}
		if s.Due(ns.Sets()[0], idOf(other), r.until.Add(-1)) || !s.Due(ns.Sets()[0], idOf(other), r.until) {
			t.Fatalf("rest %d does not end when it should", i)
		}
		m.clock = r.until
	}
	if got := fmt.Sprint(lengths); got != "["+meant+"]" || maxRest != 8 {
		t.Errorf("the rests are meant to be %s, want %s", got, meant)
	}
	if least > 5*time.Minute || most < 11*time.Minute {
		t.Errorf("of 490 long rests the shortest was %s, the longest %s", least, most)
	}
	// A change that may help ends them all.
	s.Note(ns.Sets()[0], idOf(other), m.clock, true, errors.New("it fails"))
	s.Note(list[1].Sets()[0], idOf(other), m.clock, false, ErrUnreachable)
	if s.Due(ns.Sets()[0], idOf(other), m.clock) || s.Due(list[1].Sets()[0], idOf(other), m.clock) {
		t.Error("it does not rest")
	}
	if s.Wake(); !s.Due(ns.Sets()[0], idOf(other), m.clock) || !s.Due(list[1].Sets()[0], idOf(other), m.clock) {
		t.Error("it rests after Wake")
	}
}

// A peer's turn comes once at a time, with all namespaces shared with it, and
// background syncs take half of the places.
func TestTurns(t *testing.T) {
	m := newMachine(1)
	m.Schedule.node.Places.Sessions = 7
	a, b := m.create("a", Policy{}), m.create("b", Policy{})
	for seed := 2; seed <= 6; seed++ {
		if err := setRole(a, idOf(seed), RoleRead); err != nil {
			t.Fatal(err)
		}
	}
	if err := setRole(b, idOf(6), RoleRead); err != nil {
		t.Fatal(err)
	}
	s := m.Schedule
	known := func(id ID) bool { return id != idOf(2) }
	take := func() (got []Turn) {
		for turn, ok := s.Next(); ok; turn, ok = s.Next() {
			got = append(got, turn)
		}
		return got
	}
	if _, ok := s.Next(); ok {
		t.Error("a turn before the first round")
	}
	s.Begin(known)
	s.Begin(known) // another round, before the first has run
	if len(s.waiting) != 4 {
		t.Errorf("%d turns wait for 4 peers", len(s.waiting))
	}
	running := take()
	if len(running) != 3 {
		t.Fatalf("%d turns with 7 places", len(running))
	}
	seen := map[ID]int{}
	for len(running) > 0 {
		turn := running[0]
		running = running[1:]
		if seen[turn.Remote]++; !known(turn.Remote) || turn.Remote == m.ID {
			t.Errorf("a turn of %s", turn.Remote)
		}
		want := a.Sets()
		if turn.Remote == idOf(6) {
			want = append(want[:1:1], b.Sets()...)
		}
		if len(turn.Sets) != len(want) || slices.ContainsFunc(want, func(set *Set) bool { return !slices.Contains(turn.Sets, set) }) {
			t.Errorf("a turn with %d sets", len(turn.Sets))
		}
		before := len(s.waiting)
		if s.Begin(known); len(s.waiting)+s.running > 4 || len(s.waiting) < before {
			t.Errorf("%d turns wait and %d run, of 4 peers", len(s.waiting), s.running)
		}
		s.Done(turn)
		if len(seen) < 4 {
			running = append(running, take()...)
		}
		if s.running > 3 {
			t.Errorf("%d turns run", s.running)
		}
	}
	if len(seen) != 4 {
		t.Errorf("the turns were %v", seen)
	}
	// With one place there is still one turn, so that a node syncs at all.
	m.Schedule.node.Places.Sessions = 1
	if got := take(); len(got) != 1 || s.running != 1 {
		t.Errorf("%d turns with one place", len(got))
	}
}

// A round is a function of its input: the same peers have their turns in the same
// order.
func TestRoundsAreInOrder(t *testing.T) {
	var orders [2]string
	for i := range orders {
		m := newMachine(1)
		m.Schedule.node.Places.Sessions = 100
		for n := range 5 {
			ns := must(m.open([32]byte{byte(n)}, must(m.Found([32]byte{byte(n)}, fmt.Sprint(n), Policy{}))))
			for seed := 2; seed < 10; seed++ {
				if err := setRole(ns, idOf(seed), RoleRead); err != nil {
					t.Fatal(err)
				}
			}
		}
		m.Schedule.Begin(func(ID) bool { return true })
		for turn, ok := m.Schedule.Next(); ok; turn, ok = m.Schedule.Next() {
			orders[i] += turn.Remote.String()
			for _, set := range turn.Sets {
				orders[i] += " " + set.ns.Members().Name()
			}
		}
	}
	if orders[0] != orders[1] || orders[0] == "" {
		t.Errorf("two equal rounds:\n%s\n%s", orders[0], orders[1])
	}
}

// Pauses are spread from half the interval to one and a half.
func TestPause(t *testing.T) {
	m := newMachine(1)
	least, most := time.Hour, time.Duration(0)
	for range 1000 {
		p := m.Schedule.Pause()
		least, most = min(least, p), max(most, p)
	}
	if least < 500*time.Millisecond || least > 510*time.Millisecond || most >= 1500*time.Millisecond || most < 1490*time.Millisecond {
		t.Errorf("pauses from %s to %s", least, most)
	}
	m.Schedule.node.Interval = 0
	if p := m.Schedule.Pause(); p != 0 {
		t.Errorf("a pause of %s without an interval", p)
	}
}

// While a shard has still to be found equal under its row, rounds begin each few seconds, and what
// failed rests as shortly: the hosts of a move may have been away for long.
func TestMovesDoNotRest(t *testing.T) {
	c := newShardCrew(t, []placement.Shard{0}, []placement.Shard{0})
	m, set, remote := c.machines[0], c.set(0, 0), c.machines[1].ID
	m.Interval = time.Minute
	due := func() (after time.Duration) {
		for _, reached := range []bool{true, false} {
			for range 20 {
				m.Schedule.Note(set, remote, m.clock, reached, ErrUnreachable)
			}
			for ; !m.Schedule.Due(set, remote, m.clock.Add(after)); after += time.Second {
			}
		}
		return max(after, m.Schedule.Pause())
	}
	if after := due(); after < m.Interval {
		t.Errorf("at rest what failed is due after %s", after)
	}
	set.tenure.goes(&quorum.Row{Epoch: 2, Old: []ID{remote}, New: []ID{m.ID}})
	if after := due(); after > 2*movePause {
		t.Errorf("while the shard moves what failed is due after %s", after)
	}
}
