package syncing

import (
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
)

// Equal remembers the digest of the records that each peer was last proved to have as
// well, and when. While that is what this node holds, a peer that pushes is synced with
// less often. Whichever of the two changes what it holds syncs within an interval, and
// tells its digest before that.
type Equal struct {
	mu sync.Mutex // guards of
	of map[roster.ID]proof
}

type proof struct {
	digest dbadapter.Digest
	at     time.Duration
}

// Has reports whether a peer was last proved to hold what has this digest.
func (e *Equal) Has(id roster.ID, digest dbadapter.Digest) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, ok := e.of[id]
	return ok && p.digest == digest
}

// Lately is Has of a proof that is less than EqualRest intervals old.
func (e *Equal) Lately(id roster.ID, digest dbadapter.Digest, now, interval time.Duration) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, ok := e.of[id]
	// Half an interval less: rounds come at times that vary by that.
	return ok && p.digest == digest && now < p.at+EqualRest*interval-interval/2
}

// Note remembers a proof.
func (e *Equal) Note(id roster.ID, digest dbadapter.Digest, now time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.of == nil {
		e.of = map[roster.ID]proof{}
	}
	e.of[id] = proof{digest, now}
}

// Forget drops the proof of a peer: it has got since what may be missing here.
func (e *Equal) Forget(id roster.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.of, id)
}
