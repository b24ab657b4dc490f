package node

import (
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/replica"
)

// alike remembers the digest of the control namespace that a peer was last found
// to have as well.
type alike struct {
	mu sync.Mutex
	of map[ID]dbadapter.Digest
}

// note remembers that the peer has what has this digest.
func (a *alike) note(id ID, digest dbadapter.Digest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = map[ID]dbadapter.Digest{}
	}
	a.of[id] = digest
}

// has reports whether the peer is known to have what is held now.
func (a *alike) has(id ID, live *replica.Live) bool {
	digest, _, _ := live.State()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.of[id] == digest
}

// forget has the next sync with the peer begin with the control namespace: what the peer has got
// since may be missing here.
func (a *alike) forget(id ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.of, id)
}
