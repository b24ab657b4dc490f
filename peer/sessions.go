package peer

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/syncd-io/syncd/dbadapter"
)

// sessions counts the syncs of a node, and keeps them within its limits.
type sessions struct {
	own     chan struct{} // a place for each that this node began
	running atomic.Int64

	mu       sync.Mutex
	max      int
	maxPeer  int
	incoming int
	peers    map[ID]int   // those of incoming that a peer began
	greeting map[ID]int   // streams that have not said yet what they want
	members  int          // their sum, of members
	others   int          // their sum, of strangers
	calls    map[call]int // syncs that this node began and that change something
}

// call is a sync that this node began.
type call struct {
	ns     dbadapter.NamespaceID
	remote ID
}

func newSessions(l Limits) *sessions {
	return &sessions{
		own: make(chan struct{}, l.Sessions), max: l.Sessions, maxPeer: l.SessionsPerPeer,
		peers: map[ID]int{}, greeting: map[ID]int{}, calls: map[call]int{},
	}
}

// begin waits for a place for a sync of this node's own.
func (s *sessions) begin(ctx context.Context) (release func(), err error) {
	select {
	case s.own <- struct{}{}:
		return func() { <-s.own }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// greet takes a place for a stream that has not said yet what it wants. Members
// of any namespace have places of their own: a crowd of strangers that say
// nothing keeps none of them out.
func (s *sessions) greet(remote ID, member bool) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := &s.others
	if member {
		taken = &s.members
	}
	if *taken >= greetings || s.greeting[remote] >= s.maxPeer {
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

// accept takes a place for a sync that a peer begins.
func (s *sessions) accept(remote ID) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.incoming >= s.max || s.peers[remote] >= s.maxPeer {
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

// calling notes that this node syncs a namespace with a peer, until done is
// called.
func (s *sessions) calling(ns dbadapter.NamespaceID, remote ID) (done func()) {
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

// yields reports whether a sync that a peer begins must wait, since this node
// began the same, and has the lower id.
func (s *sessions) yields(ns dbadapter.NamespaceID, self, remote ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return self < remote && s.calls[call{ns, remote}] > 0
}

func decrement[K comparable](m map[K]int, k K) {
	if m[k]--; m[k] <= 0 {
		delete(m, k)
	}
}
