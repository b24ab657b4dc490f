package reconcile

import (
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Aside remembers which of our records one peer has refused, and why, so that
// they are not sent to it again with every sync. It is bounded: when full, it
// forgets all and learns anew. The nil Aside remembers nothing.
type Aside struct {
	mu      sync.Mutex // guards refused
	refused map[dbadapter.Index]wire.Refusal
}

func (a *Aside) add(r wire.Refusal) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refused == nil || len(a.refused) >= maxSetAside {
		a.refused = map[dbadapter.Index]wire.Refusal{}
	}
	a.refused[r.Index] = r
}

func (a *Aside) has(i dbadapter.Index, sum dbadapter.Checksum) bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	r, ok := a.refused[i]
	return ok && r.Checksum == sum
}

func (a *Aside) empty() bool {
	if a == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.refused) == 0
}

// List returns what has been refused.
func (a *Aside) List() []wire.Refusal {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	list := make([]wire.Refusal, 0, len(a.refused))
	for _, r := range a.refused {
		list = append(list, r)
	}
	return list
}
