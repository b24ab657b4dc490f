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

	mu       sync.Mutex // guards what follows
	incoming int
	peers    map[roster.ID]int // those of incoming that a peer began
	shown    int               // those of incoming in which strangers show their lists
	greeting map[roster.ID]int // streams that have not said yet what they want
	members  int               // their sum, of members
	others   int               // their sum, of strangers
	calls    map[call]int      // syncs that this node began and that change something
}

// call is a sync that this node began.
type call struct {
	ns     dbadapter.NamespaceID
	remote roster.ID
}

// NewSessions is without any sync.
func NewSessions(p Places) *Sessions {
	return &Sessions{places: p, peers: map[roster.ID]int{}, greeting: map[roster.ID]int{}, calls: map[call]int{}}
}

// Greet takes a place for a stream that has not said yet what it wants. Members
// of any namespace have places of their own: a crowd of silent strangers keeps
// no member out.
func (s *Sessions) Greet(remote roster.ID, member bool) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := &s.others
	if member {
		taken = &s.members
	}
	if *taken >= s.places.Greetings || s.greeting[remote] >= s.places.PerPeer {
		return nil, false
	}
	*taken++
	s.greeting[remote]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		*taken--
		decrement(s.greeting, remote)
	}, true
}

// Accept takes a place for a sync that a peer begins.
func (s *Sessions) Accept(remote roster.ID) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.incoming >= s.places.Sessions || s.peers[remote] >= s.places.PerPeer {
		return nil, false
	}
	s.incoming++
	s.peers[remote]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.incoming--
		decrement(s.peers, remote)
	}, true
}

// Introduce takes a place for a sync in which a peer that is not a member shows its
// list. There is one a peer, and in all a quarter of those for members.
func (s *Sessions) Introduce(remote roster.ID) (release func(), ok bool) {
	s.mu.Lock()
	full := s.shown >= max(1, s.places.Sessions/4) || s.peers[remote] > 0
	if !full {
		s.shown++
	}
	s.mu.Unlock()
	if full {
		return nil, false
	}
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.shown--
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

func decrement[K comparable](m map[K]int, k K) {
	if m[k]--; m[k] <= 0 {
		delete(m, k)
	}
}
