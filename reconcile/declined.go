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
	records map[name]DeclinedRecord
}

// name is the first half of a record's digest: no two records have one.
type name [2]uint64

func nameOf(r *dbadapter.Hashed) name { return name(r.Digest[:2]) }

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

func (d *Declined) add(h *dbadapter.Hashed, why wire.Reason) {
	if d == nil {
		return
	}
	r := DeclinedRecord{Version: h.Version, Reason: why}
	if d.Now != nil {
		r.At = d.Now()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.records == nil || len(d.records) >= maxDeclined {
		d.records = map[name]DeclinedRecord{}
	}
	d.records[nameOf(h)] = r
}

// Of is what is remembered of a record; ok is false if the peer has not declined it.
func (d *Declined) Of(r *dbadapter.Hashed) (_ DeclinedRecord, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one, ok := d.records[nameOf(r)]
	return one, ok
}

// reason is why a record was declined; 0 if it was not.
func (d *Declined) reason(r *dbadapter.Hashed) wire.Reason {
	if d == nil {
		return 0
	}
	one, _ := d.Of(r)
	return one.Reason
}
