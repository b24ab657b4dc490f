package node

import (
	"sync"
	"time"

	"github.com/syncd-io/syncd/reconcile"
)

// declined remembers which of a namespace's records each peer has refused
// lately, so that they are not sent to it again with every sync.
type declined struct {
	mu sync.Mutex
	of map[ID]declinedBy
}

type declinedBy struct {
	*reconcile.Declined
	until time.Time
}

// by is what one peer has refused, to be added to by a sync.
func (d *declined) by(id ID, now time.Time) *reconcile.Declined {
	d.mu.Lock()
	defer d.mu.Unlock()
	one, ok := d.of[id]
	if !ok || !now.Before(one.until) {
		if d.of == nil {
			d.of = map[ID]declinedBy{}
		}
		one = declinedBy{new(reconcile.Declined), now.Add(DeclinedLife)}
		d.of[id] = one
	}
	return one.Declined
}

// forget drops what all peers have refused: the members have changed.
func (d *declined) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.of)
}
