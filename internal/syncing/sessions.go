package syncing

import (
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
)

// Places bounds the sessions of a node.
type Places struct {
	// Sessions is how many syncs may run at once that this node began, and as
	// many again that its peers began.
	Sessions int
	// PerPeer is how many of the latter one peer may have begun.
	PerPeer int
	// Greetings is how many streams at once may be about to say what they want,
	// of members, and as many again of strangers.
	Greetings int
}

// Sessions counts the syncs of a node and keeps them within its places. It
// decides which of two nodes yields that call each other at once.
type Sessions struct {
	places Places

	incoming counted // syncs that peers began
	shown    counted // those of incoming in which strangers show their lists
	members  counted // streams of members that have not said yet what they want
	others   counted // the same of strangers

	mu    sync.Mutex   // guards what follows
	calls map[call]int // syncs that this node began and that change something
}

// call is a sync that this node began.
type call struct {
	ns     dbadapter.NamespaceID
	remote roster.ID
}

// NewSessions is without any sync.
func NewSessions(p Places) *Sessions {
	return &Sessions{places: p, calls: map[call]int{}}
}

// Greet takes a place for a stream that has not said yet what it wants. Members
// of any namespace have places of their own: a crowd of silent strangers keeps
// no member out.
func (s *Sessions) Greet(remote roster.ID, member bool) (release func(), ok bool) {
	if member {
		return s.members.take(remote, s.places.PerPeer, s.places.Greetings)
	}
	return s.others.take(remote, s.places.PerPeer, s.places.Greetings)
}

// Accept takes a place for a sync that a peer begins.
func (s *Sessions) Accept(remote roster.ID) (release func(), ok bool) {
	return s.incoming.take(remote, s.places.PerPeer, s.places.Sessions)
}

// Introduce takes a place for a sync in which a peer that is not a member shows its
// list. There is one a peer, and in all a quarter of those for members.
func (s *Sessions) Introduce(remote roster.ID) (release func(), ok bool) {
	leave, ok := s.shown.take(remote, 1, max(1, s.places.Sessions/4))
	if !ok {
		return nil, false
	}
	done, ok := s.Accept(remote)
	if !ok {
		leave()
		return nil, false
	}
	return func() { leave(); done() }, true
}

// Call notes that this node syncs a part with a peer, until done is
// called.
func (s *Sessions) Call(ns dbadapter.NamespaceID, remote roster.ID) (done func()) {
	c := call{ns, remote}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[c]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		decrement(s.calls, c)
	}
}

// Yields reports whether a sync that a peer begins must wait: this node began
// the same, and has the lower id.
func (s *Sessions) Yields(ns dbadapter.NamespaceID, self, remote roster.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return self < remote && s.calls[call{ns, remote}] > 0
}

// counted are the places of one kind that peers have taken.
type counted struct {
	mu  sync.Mutex // guards what follows
	all int
	of  map[roster.ID]int
}

// take takes a place for a peer, which has most of them, of inAll for all peers.
func (c *counted) take(remote roster.ID, most, inAll int) (release func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all >= inAll || c.of[remote] >= most {
		return nil, false
	}
	if c.of == nil {
		c.of = map[roster.ID]int{}
	}
	c.all++
	c.of[remote]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all--
		decrement(c.of, remote)
	}, true
}

func decrement[K comparable](m map[K]int, k K) {
	if m[k]--; m[k] <= 0 {
		delete(m, k)
	}
}
