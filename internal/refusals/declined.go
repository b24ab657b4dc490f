package refusals

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Declined remembers which of a part's records each peer has declined, so
// that they are not sent to it again with every sync.
type Declined struct {
	mu sync.Mutex
	of map[roster.ID]*declinedBy
}

type declinedBy struct {
	*reconcile.Declined
	seen   time.Time // this machine's time at the last sync
	doubts bool      // Doubts has said that the peer declines for the clock
	// list is the digest of the peer's list of members, as it greeted last.
	list roster.Digest
}

// By is what one peer has declined, to be added to by a sync. What may be
// acceptable to the peer by now is forgotten. So is everything when this machine's
// clock was set back, since it dated what the peer refused.
func (d *Declined) By(id roster.ID, clock func() time.Time, skew time.Duration) *reconcile.Declined {
	d.mu.Lock()
	defer d.mu.Unlock()
	one := d.of[id]
	if one == nil {
		if d.of == nil {
			d.of = map[roster.ID]*declinedBy{}
		}
		one = &declinedBy{Declined: &reconcile.Declined{Now: clock}}
		d.of[id] = one
	}
	now := clock().Round(0) // a monotonic reading would hide that the clock was set
	one.Forget(func(r reconcile.DeclinedRecord) bool { return one.rest(&r, now, skew) == 0 })
	one.seen = now
	return one.Declined
}

// rest is for how long a record that the peer has declined is not offered again.
func (d *declinedBy) rest(r *reconcile.DeclinedRecord, now time.Time, skew time.Duration) time.Duration {
	if now.Before(d.seen.Add(-clockSlack)) {
		return 0
	}
	return max(0, again(r, skew).Sub(now))
}

// Rests is why a peer has declined a record, and for how long it is not offered to
// it again. It is 0 if the record is offered with the next sync. list is the digest
// of the peer's list of members.
func (d *Declined) Rests(id roster.ID, list roster.Digest, r *dbadapter.Hashed, now time.Time, skew time.Duration) (wire.Reason, time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one := d.of[id]
	if one == nil {
		return 0, 0
	}
	of, ok := one.Of(r)
	if !ok || one.list != list && of.Reason != wire.ReasonClock {
		return 0, 0
	}
	rest := one.rest(&of, now.Round(0), skew)
	if rest == 0 {
		return 0, 0
	}
	return of.Reason, rest
}

// Under notes the list of members that a peer greets with. Under another one than
// before it may take what it has declined.
func (d *Declined) Under(id roster.ID, list roster.Digest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one := d.of[id]
	if one == nil || one.list == list {
		return
	}
	one.list = list
	one.Forget(func(r reconcile.DeclinedRecord) bool { return r.Reason != wire.ReasonClock })
}

// again is when a declined record is offered again. One that was declined for its
// time waits until a right clock accepts it. Where by this machine's clock that was
// so already, the peer's clock is behind. Then the record waits as long as it has
// been so, which is a few seconds for two good clocks.
func again(r *reconcile.DeclinedRecord, skew time.Duration) time.Time {
	if r.Reason != wire.ReasonClock {
		return r.At.Add(DeclinedLife)
	}
	due := r.Version.Clock.Time().Add(-skew)
	if due.After(r.At) {
		return due
	}
	return r.At.Add(min(max(r.At.Sub(due), clockSlack), DeclinedLife))
}

// Forget drops what all peers have declined: the members, or the records, have
// changed.
func (d *Declined) Forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.of)
}

// Peers lists the peers that decline what a writer wrote for its time, by id.
func (d *Declined) Peers(writer dbadapter.WriterID) (list []status.DeclinedBy) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, one := range d.of {
		if n := one.ahead(writer); n > 0 {
			list = append(list, status.DeclinedBy{Peer: status.ID(id), Records: n})
		}
	}
	slices.SortFunc(list, func(a, b status.DeclinedBy) int { return strings.Compare(string(a.Peer), string(b.Peer)) })
	return list
}

// ahead counts the records of a writer that the peer declines for their time.
func (d *declinedBy) ahead(writer dbadapter.WriterID) int {
	return d.Count(func(r reconcile.DeclinedRecord) bool {
		return r.Reason == wire.ReasonClock && r.Version.Writer == writer
	})
}

// Doubts is how many records of a writer a peer declines for their time, after a sync. It says
// so once, until the two have been equal again; 0 otherwise.
func (d *Declined) Doubts(peer roster.ID, writer dbadapter.WriterID, equal bool) (records int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch one := d.of[peer]; {
	case one == nil:
	case equal:
		one.doubts = false
	case !one.doubts:
		records = one.ahead(writer)
		one.doubts = records > 0
	}
	return records
}
