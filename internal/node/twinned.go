package node

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/syncd-io/syncd/reconcile"
)

// Twinned is what a peer has told this node: another node runs with its identity.
// Only the peers can tell, since the two do not meet.
type Twinned struct {
	By ID
	At time.Time // by this node's clock
}

// twinned is the last such word of a peer.
type twinned struct {
	mu   sync.Mutex
	last Twinned
}

// told takes an error that ended a conversation. Where the peer has refused it for a
// twin of this node, that is remembered, and the error says what to do.
func (t *twinned) told(by ID, now time.Time, err error) error {
	if !errors.Is(err, reconcile.ErrTwin) {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = Twinned{by, now}
	return fmt.Errorf("%w as this one, and %s has heard both: a copy of the data directory is running; stop one of the two, and give it an identity of its own before it runs again (syncd init --new-identity); the other is synced with again %.0f minutes later", err, by, TwinLife.Minutes())
}

// Twinned reports what a peer has told of a node with this one's identity within
// the last TwinLife.
func (ns *Namespace) Twinned() (Twinned, bool) {
	ns.twinned.mu.Lock()
	defer ns.twinned.mu.Unlock()
	last := ns.twinned.last
	return last, !last.At.IsZero() && ns.node.Now().Sub(last.At) <= TwinLife
}
