package clocks

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Twin says that two nodes run with one identity: a copy of a data folder was
// started beside the original. Records of the one can take the place of the other's.
type Twin struct {
	Peer roster.ID
	// Incarnations are those of the two, the one that greeted last first, and
	// At is when each greeted.
	Incarnations [2]uint64
	At           [2]time.Time
}

// Twins tells from the greetings of a namespace's members whether two nodes run
// with the identity of one.
//
// A clock gives no reading twice, also after a restart. So the taus of one
// incarnation of a node are all below those of the next. In the order of tau, the
// greetings of a single node therefore stand in one run for each incarnation. That
// holds however late they arrive and in whatever order. An incarnation that returns
// after another one, and begins a further run, is of a second node that runs at the
// same time. (Either alone says less. A greeting may be late, and a node that has
// dropped a namespace and joined it again has forgotten the readings of its clock.)
type Twins struct {
	mu sync.Mutex
	of map[roster.ID]*identity
}

// identity is what the greetings of one peer have shown.
type identity struct {
	runs  []run // ascending and apart; neighbours differ in their incarnation
	twin  Twin
	found time.Time // the last time that an incarnation came back; zero: never
	heard time.Time
	last  uint64 // the incarnation heard last
}

// run is a part of the greetings, in the order of tau, that are of one incarnation.
type run struct {
	incarnation uint64
	first, last dbadapter.Timestamp
	heard       time.Time
}

// Greeted takes a peer's greeting. The error is reconcile.ErrTwin while two nodes run
// with its identity: neither is synced with until one has been silent for TwinLife.
func (t *Twins) Greeted(peer roster.ID, g *wire.Greeting, now time.Time, skew time.Duration) error {
	t.note(peer, g, now, skew)
	two, ok := t.Of(peer, now)
	if !ok {
		return nil
	}
	return fmt.Errorf("%w: %s greeted as %016x at %s and as %016x at %s; stop one of the two, and %s",
		reconcile.ErrTwin, peer, two.Incarnations[0], two.At[0].Format(time.TimeOnly), two.Incarnations[1], two.At[1].Format(time.TimeOnly), cure())
}

// cure is what to do with one of two twins, once it was stopped.
func cure() string {
	return fmt.Sprintf("give it an identity of its own before it runs again (syncd init --new-identity); the other is synced with again %.0f minutes later", TwinLife.Minutes())
}

// note takes a peer's greeting. A tau further ahead than the skew allows says
// nothing: the peer's clock is wrong, and a restamp will set it back.
func (t *Twins) note(peer roster.ID, g *wire.Greeting, now time.Time, skew time.Duration) {
	if g.Tau == 0 || g.Tau.Time().After(now.Add(skew)) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.of[peer]
	if one == nil {
		if t.of == nil {
			t.of = map[roster.ID]*identity{}
		}
		if len(t.of) >= roster.MaxMembers {
			delete(t.of, longestSilent(t.of, func(i *identity) time.Time { return i.heard }))
		}
		one = &identity{}
		t.of[peer] = one
	}
	back := one.last != g.Incarnation
	one.heard, one.last = now, g.Incarnation
	if other, ok := one.add(run{g.Incarnation, g.Tau, g.Tau, now}); ok && back {
		one.found = now
		one.twin = Twin{peer, [2]uint64{g.Incarnation, other.incarnation}, [2]time.Time{now, other.heard}}
	}
}

// longestSilent is the key whose entry was heard of the longest time ago.
func longestSilent[E any](of map[roster.ID]E, heard func(E) time.Time) (id roster.ID) {
	var oldest time.Time
	for k, e := range of {
		if at := heard(e); id == "" || at.Before(oldest) || at.Equal(oldest) && k < id {
			id, oldest = k, at
		}
	}
	return id
}

// add takes one more greeting. If it begins a further run of its incarnation, ok is
// true, and other is the run that it came after, or into.
func (i *identity) add(r run) (other run, ok bool) {
	tau := r.first
	known := slices.ContainsFunc(i.runs, func(have run) bool { return have.incarnation == r.incarnation })
	at, _ := slices.BinarySearchFunc(i.runs, tau, func(r run, tau dbadapter.Timestamp) int {
		if r.last < tau {
			return -1
		}
		return 1
	}) // the first run that ends at tau or later
	if at < len(i.runs) && i.runs[at].first <= tau {
		in := &i.runs[at]
		if in.incarnation == r.incarnation {
			in.heard = r.heard
			return run{}, false
		}
		other = *in
		if tau == in.first || tau == in.last {
			return run{}, false // one reading of two nodes: another will tell
		}
		before, after := *in, *in
		before.last, after.first = tau-1, tau+1
		i.runs = slices.Replace(i.runs, at, at+1, before, r, after)
		i.bound()
		return other, known
	}
	if at > 0 && i.runs[at-1].incarnation == r.incarnation {
		i.runs[at-1].last, i.runs[at-1].heard = tau, r.heard
		return run{}, false
	}
	if at < len(i.runs) && i.runs[at].incarnation == r.incarnation {
		i.runs[at].first, i.runs[at].heard = tau, r.heard
		return run{}, false
	}
	if known {
		other = i.runs[max(at, 1)-1] // what it comes after; the lowest run, if it comes before all
	}
	i.runs = slices.Insert(i.runs, at, r)
	i.bound()
	return other, known
}

// bound drops the run that was heard of the longest time ago, while there are too
// many. What is left are still greetings of the peer.
func (i *identity) bound() {
	for len(i.runs) > maxRuns {
		oldest := 0
		for n := range i.runs {
			if i.runs[n].heard.Before(i.runs[oldest].heard) {
				oldest = n
			}
		}
		i.runs = slices.Delete(i.runs, oldest, oldest+1)
		if oldest > 0 && oldest < len(i.runs) && i.runs[oldest-1].incarnation == i.runs[oldest].incarnation {
			i.runs[oldest-1].last, i.runs[oldest-1].heard = i.runs[oldest].last, later(i.runs[oldest-1].heard, i.runs[oldest].heard)
			i.runs = slices.Delete(i.runs, oldest, oldest+1)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Of reports whether two nodes run with a peer's identity: whether both have
// greeted this node by turns within the last TwinLife.
func (t *Twins) Of(peer roster.ID, now time.Time) (Twin, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[peer].lately(now)
}

// List lists the identities that two nodes run with, by id.
func (t *Twins) List(now time.Time) (list []Twin) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.of {
		if two, ok := one.lately(now); ok {
			list = append(list, two)
		}
	}
	slices.SortFunc(list, func(a, b Twin) int { return strings.Compare(string(a.Peer), string(b.Peer)) })
	return list
}

// lately is the twin that was found of a peer; nil: a peer that has not greeted.
func (i *identity) lately(now time.Time) (Twin, bool) {
	if i == nil || i.found.IsZero() || now.Sub(i.found) > TwinLife {
		return Twin{}, false
	}
	return i.twin, true
}

// Copied remembers which peer has said last that another node runs with this one's
// identity.
type Copied struct {
	mu sync.Mutex
	by roster.ID
	at time.Time // by this node's clock
}

// Ended takes the error that ended a conversation with a peer. If the peer has
// refused this node for its twin, that is remembered, and the error says what to do.
func (c *Copied) Ended(by roster.ID, now time.Time, err error) error {
	if !errors.Is(err, reconcile.ErrTwin) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by, c.at = by, now
	return fmt.Errorf("%w as this one, and %s has heard both: a copy of the data directory is running; stop one of the two, and %s", err, by, cure())
}

// By is the peer that has said so within the last TwinLife, and when; nil: none has.
func (c *Copied) By(now time.Time) *status.Twinned {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() || now.Sub(c.at) > TwinLife {
		return nil
	}
	return &status.Twinned{By: status.ID(c.by), At: c.at}
}
