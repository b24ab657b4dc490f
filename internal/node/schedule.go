package node

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// Schedule decides when the node syncs with which peer on its own. Each peer has a
// lane: one sync at a time, and rests after failures. So a slow peer does not delay
// the others.
//
// A driver calls Begin after each Pause, then Next until it gives nothing. It runs
// the syncs of each Turn that it got, and calls Done and Next again when a turn is
// over.
type Schedule struct {
	node *Node

	mu      sync.Mutex // guards what follows
	lanes   map[ID]*lane
	waiting []Turn // begun, and without a place
	running int
}

// Turn is a peer whose turn it is, with the sets to sync with it.
type Turn struct {
	Remote ID
	Sets   []*Set
	// Control are the namespaces that are cut into shards of which the two share no set. Their
	// control namespaces are synced all the same (Namespace.Course).
	Control []*Namespace
}

// lane is the background syncs with one peer.
type lane struct {
	taken bool // it waits for a place, or runs
	whole rest // while the peer cannot be reached
	of    map[dbadapter.NamespaceID]*rest
}

// rest keeps from trying too often what fails: it grows up to maxRest intervals.
type rest struct {
	length time.Duration // the next one; 0 after a success
	until  time.Time
}

func newSchedule(n *Node) *Schedule { return &Schedule{node: n, lanes: map[ID]*lane{}} }

// Pause is how long to wait before the next round. While a set seeks, a move waits for syncs.
func (s *Schedule) Pause() time.Duration {
	pause := s.node.Interval
	if slices.ContainsFunc(s.node.namespaces(), (*Namespace).Seeks) {
		pause = min(pause, movePause)
	}
	return s.node.jittered(pause, ForInterval)
}

// Begin begins a round. Each peer of which known reports a way to reach it takes
// its turn, unless the last one is not over.
func (s *Schedule) Begin(known func(ID) bool) {
	partners := s.partners(known)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range partners {
		if l := s.lane(t.Remote); !l.taken {
			l.taken = true
			s.waiting = append(s.waiting, t)
		}
	}
}

// lane is that of a peer; mu is held.
func (s *Schedule) lane(remote ID) *lane {
	l := s.lanes[remote]
	if l == nil {
		l = &lane{of: map[dbadapter.NamespaceID]*rest{}}
		s.lanes[remote] = l
	}
	return l
}

// partners are the peers that can be reached with the sets that they share with
// this node. They are in the order of their ids, so a round is a function of its
// input.
func (s *Schedule) partners(known func(ID) bool) []Turn {
	shared := map[ID]*Turn{}
	for _, ns := range s.node.namespaces() { // known may ask the node, whose lock a set that comes may wait for
		for _, m := range ns.Members().Members() {
			if m.ID != s.node.ID && ns.PausedWith(m.ID) == nil {
				if shared[m.ID] == nil {
					shared[m.ID] = &Turn{Remote: m.ID}
				}
				shared[m.ID].add(ns)
			}
		}
	}
	var turns []Turn
	for id, t := range shared {
		if !known(id) {
			continue
		}
		slices.SortFunc(t.Sets, func(a, b *Set) int { return slices.Compare(a.Keys.ID[:], b.Keys.ID[:]) })
		slices.SortFunc(t.Control, func(a, b *Namespace) int { return slices.Compare(a.id[:], b.id[:]) })
		turns = append(turns, *t)
	}
	slices.SortFunc(turns, func(a, b Turn) int { return strings.Compare(string(a.Remote), string(b.Remote)) })
	return turns
}

// add adds what is synced of a namespace.
func (t *Turn) add(ns *Namespace) {
	before := len(t.Sets)
	for _, set := range ns.Sets() {
		if set.saidBy(t.Remote) {
			t.Sets = append(t.Sets, set)
		}
	}
	if len(t.Sets) == before {
		t.Control = append(t.Control, ns)
	}
}

// Next gives the next turn, while there is a place. Background syncs take half of
// those of the node, so a caller that asks for a sync gets one.
func (s *Schedule) Next() (Turn, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 || s.running >= max(1, s.node.Places.Sessions/2) {
		return Turn{}, false
	}
	t := s.waiting[0]
	s.waiting = s.waiting[1:]
	s.running++
	return t, true
}

// Done ends a turn.
func (s *Schedule) Done(t Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	s.lanes[t.Remote].taken = false
}

// Due reports whether a set is to be synced with a peer in its turn. That is so if
// neither rests, and they were not proved equal a short while ago. The time now is
// the driver's own, which the machine's clock does not move.
func (s *Schedule) Due(set *Set, remote ID, now time.Time) bool {
	if set.agreed(remote) { // it locks what Wake is called with
		return false
	}
	return s.due(&set.Part, remote, now)
}

// DueControl is Due for a control namespace of Turn.Control.
func (s *Schedule) DueControl(ns *Namespace, remote ID, now time.Time) bool {
	return s.due(&ns.Control, remote, now)
}

func (s *Schedule) due(p *Part, remote ID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lane(remote)
	r := l.of[p.Keys.ID]
	return !now.Before(l.whole.until) && (r == nil || !now.Before(r.until))
}

// Note tells how a sync ended. reached says whether there is a connection to the
// peer. A set that fails, because the peer has dropped it perhaps, rests
// alone; a peer that is away rests with all. A sync that ran to its end and left
// records declined has not failed: all others have travelled.
func (s *Schedule) Note(set *Set, remote ID, now time.Time, reached bool, err error) {
	s.noteSync(&set.Part, remote, now, reached, err)
}

// NoteControl is Note for a control namespace of Turn.Control.
func (s *Schedule) NoteControl(ns *Namespace, remote ID, now time.Time, reached bool, err error) {
	s.noteSync(&ns.Control, remote, now, reached, err)
}

func (s *Schedule) noteSync(p *Part, remote ID, now time.Time, reached bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lane(remote)
	r := l.of[p.Keys.ID]
	if r == nil {
		r = &rest{}
		l.of[p.Keys.ID] = r
	}
	longest := maxRest * s.node.Interval
	if p.set != nil && p.set.tenure.seeks() {
		longest = min(s.node.Interval, movePause)
	}
	away := failed(err) && !reached && errors.Is(err, ErrUnreachable)
	s.note(&l.whole, now, away, longest)
	s.note(r, now, failed(err) && !away, longest)
}

func (s *Schedule) note(r *rest, now time.Time, failed bool, longest time.Duration) {
	if !failed {
		*r = rest{}
		return
	}
	r.length = min(max(s.node.Interval, r.length*3/2), longest)
	r.until = now.Add(s.node.jittered(r.length, ForRest))
}

// Wake ends all rests: a change is known that may help.
func (s *Schedule) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lanes {
		l.whole = rest{}
		clear(l.of)
	}
}
