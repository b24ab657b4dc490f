package peer

import (
	"sync"
	"time"

	"github.com/syncd-io/syncd/reconcile"
)

// asideLife is for how long a peer's refusal of a record is taken for final.
// Then the record is offered again: the peer may know its writer by now, or
// have set its clock.
const asideLife = 15 * time.Minute

// asides remembers what each peer has refused of a namespace's records.
type asides struct {
	mu sync.Mutex
	of map[ID]aside
}

type aside struct {
	*reconcile.Aside
	until time.Time
}

func (as *asides) get(id ID, now time.Time) *reconcile.Aside {
	as.mu.Lock()
	defer as.mu.Unlock()
	a, ok := as.of[id]
	if !ok || !now.Before(a.until) {
		if as.of == nil {
			as.of = map[ID]aside{}
		}
		a = aside{new(reconcile.Aside), now.Add(asideLife)}
		as.of[id] = a
	}
	return a.Aside
}

// forget drops what a peer has refused; its view of the members has changed.
func (as *asides) forget() {
	as.mu.Lock()
	defer as.mu.Unlock()
	clear(as.of)
}
