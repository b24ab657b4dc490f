package node

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Twin says that two nodes run with one identity: a copy of a data folder was
// started beside the original. Records of the one can take the place of the other's.
type Twin struct {
	Peer ID
	// Incarnations are those of the two, the one that greeted last first, and
	// Heard is when each greeted.
	Incarnations [2]uint64
	Heard        [2]time.Time
}

// twins tells from the greetings of a namespace's members whether two nodes run
// with the identity of one.
//
// A clock gives no reading twice, also after a restart. So the taus of one
// incarnation of a node are all below those of the next. In the order of tau, the
// greetings of a single node therefore stand in one run for each incarnation. That
// holds however late they arrive and in whatever order. An incarnation that returns
// after another one, and begins a further run, is of a second node that runs at the
// same time. (Either alone says less. A greeting may be late, and a node that has
// dropped a namespace and joined it again has forgotten the readings of its clock.)
type twins struct {
	mu sync.Mutex
	of map[ID]*identity
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

// note takes a peer's greeting. A tau further ahead than the skew allows says
// nothing: the peer's clock is wrong, and a restamp will set it back.
func (t *twins) note(remote ID, g *wire.Greeting, now time.Time, skew time.Duration) {
	if g.Tau == 0 || g.Tau.Time().After(now.Add(skew)) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.of[remote]
	if one == nil {
		if t.of == nil {
			t.of = map[ID]*identity{}
		}
		if len(t.of) >= MaxMembers {
			delete(t.of, longestSilent(t.of, func(i *identity) time.Time { return i.heard }))
		}
		one = &identity{}
		t.of[remote] = one
	}
	back := one.last != g.Incarnation
	one.heard, one.last = now, g.Incarnation
	if other, ok := one.add(run{g.Incarnation, g.Tau, g.Tau, now}); ok && back {
		one.found = now
		one.twin = Twin{remote, [2]uint64{g.Incarnation, other.incarnation}, [2]time.Time{now, other.heard}}
	}
}

// longestSilent is the key whose entry was heard of the longest time ago.
func longestSilent[E any](of map[ID]E, heard func(E) time.Time) (id ID) {
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

// Twin reports whether two nodes run with a peer's identity: whether both have
// greeted this node by turns within the last TwinLife.
func (ns *Namespace) Twin(remote ID) (Twin, bool) {
	return ns.twins.twin(remote, ns.node.Now())
}

// Twins lists the identities that two nodes run with, by id.
func (ns *Namespace) Twins() (list []Twin) {
	now := ns.node.Now()
	for _, id := range ns.twins.heard() {
		if t, ok := ns.twins.twin(id, now); ok {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b Twin) int { return strings.Compare(string(a.Peer), string(b.Peer)) })
	return list
}

func (t *twins) twin(remote ID, now time.Time) (Twin, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.of[remote]
	if one == nil || one.found.IsZero() || now.Sub(one.found) > TwinLife {
		return Twin{}, false
	}
	return one.twin, true
}

func (t *twins) heard() (ids []ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range t.of {
		ids = append(ids, id)
	}
	return ids
}
