package node

import (
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// equal remembers the digest of the records that a peer which pushes was last
// proved to have as well, and when. While that is what this node holds, the peer is
// synced with less often. Whichever of the two changes what it holds syncs within
// an interval, and tells its digest before that.
type equal struct {
	mu sync.Mutex // guards of
	of map[ID]proof
}

type proof struct {
	digest dbadapter.Digest
	at     time.Duration
}

// equalRest is for how many intervals a pair that was proved equal is not synced, at most.
const equalRest = 5

// has reports whether a peer was last proved to hold what has this digest.
func (e *equal) has(id ID, digest dbadapter.Digest) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, ok := e.of[id]
	return ok && p.digest == digest
}

// note remembers a proof.
func (e *equal) note(id ID, digest dbadapter.Digest, now time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.of == nil {
		e.of = map[ID]proof{}
	}
	e.of[id] = proof{digest, now}
}

// agreed reports whether a peer need not be synced with yet. A short while ago it
// was proved to hold what this node holds. Besides, nothing waits for what members
// have seen, and no row asks for another sync.
func (set *Set) agreed(remote ID) bool {
	n := set.ns.node
	if !n.Push.On || set.tenure.seeks() {
		return false
	}
	set.equal.mu.Lock()
	p, ok := set.equal.of[remote]
	set.equal.mu.Unlock()
	// Half an interval less: rounds come at times that vary by that.
	if !ok || n.elapsed() >= p.at+equalRest*n.Interval-n.Interval/2 {
		return false
	}
	if digest, _, _ := set.Live.State(); digest != p.digest || !set.ns.alike.has(remote, set.ns.Control.Live) {
		return false
	}
	set.gc.Lock()
	defer set.gc.Unlock()
	waiting, _ := set.gc.waiting.Now()
	return waiting.Count == 0 && !set.gc.mark.Recovering()
}
