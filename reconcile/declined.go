package reconcile

import (
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Declined remembers which of our records one peer has declined, and why, so
// that their values are not sent to it again with every sync. It is bounded:
// when full, it forgets all and learns anew. Its owner decides what to forget,
// and when. The nil Declined remembers nothing.
type Declined struct {
	// Now, if not nil, dates what is declined.
	Now func() time.Time

	mu      sync.Mutex // guards records
	records map[dbadapter.Pair]DeclinedRecord
}

// DeclinedRecord is a record that the peer has declined.
type DeclinedRecord struct {
	Version dbadapter.Version
	Reason  wire.Reason
	At      time.Time // when the peer said so, by Declined.Now
}

// Forget drops the records for which over reports true: they travel again.
func (d *Declined) Forget(over func(DeclinedRecord) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for p, r := range d.records {
		if over(r) {
			delete(d.records, p)
		}
	}
}

// Count is for how many of the records fn reports true.
func (d *Declined) Count(fn func(DeclinedRecord) bool) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.records {
		if fn(r) {
			n++
		}
	}
	return n
}

func (d *Declined) add(p dbadapter.Pair, v dbadapter.Version, why wire.Reason) {
	if d == nil {
		return
	}
	r := DeclinedRecord{Version: v, Reason: why}
	if d.Now != nil {
		r.At = d.Now()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.records == nil || len(d.records) >= maxDeclined {
		d.records = map[dbadapter.Pair]DeclinedRecord{}
	}
	d.records[p] = r
}

// reason is why a record was declined; 0 if it was not. Its version tells it from
// another that a member has ground to its pair.
func (d *Declined) reason(p dbadapter.Pair, v dbadapter.Version) wire.Reason {
	if d == nil {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.records[p]; r.Version == v {
		return r.Reason
	}
	return 0
}

func (d *Declined) empty() bool {
	if d == nil {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.records) == 0
}
