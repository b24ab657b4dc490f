package reconcile

import (
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Declined remembers which of our records one peer has refused, and why, so
// that their values are not sent to it again with every sync. It is bounded:
// when full, it forgets all and learns anew. The nil Declined remembers nothing.
type Declined struct {
	mu      sync.Mutex // guards reasons
	reasons map[dbadapter.Pair]wire.Reason
}

func (d *Declined) add(r wire.Refusal) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reasons == nil || len(d.reasons) >= maxDeclined {
		d.reasons = map[dbadapter.Pair]wire.Reason{}
	}
	d.reasons[dbadapter.Pair{Index: r.Index, Checksum: r.Checksum}] = r.Reason
}

func (d *Declined) has(p dbadapter.Pair) bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.reasons[p]
	return ok
}

func (d *Declined) empty() bool {
	if d == nil {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.reasons) == 0
}
