package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/push"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/refusals"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Arrival is records from a peer that have been examined.
type Arrival struct {
	from ID
	// theirs is the floor that the peer has greeted with; 0 for a push, which greets with
	// nothing.
	theirs  dbadapter.Timestamp
	members *membership.Members // the list under which they were examined
	// began is the term of this node's tenure in which the sync began that brings
	// the records. It is noTerm if the sync was not under one list.
	began quorum.Term
	way   way
	// adopts: they are committed also where this node is a host of the shard no more.
	adopts bool
	// Routed is the records, which have no conditions unless a writer has sent them.
	Routed

	// What follows has one entry for each record. A verdict is there once the record was
	// refused, or committed.
	refused  []*refusals.Refusal
	verdicts []reconcile.Verdict
}

// way is how records have come.
type way uint8

const (
	bySync way = iota
	byPush
	byRoute // from a writer that need hold nothing of the set
)

// arrived examines records from a peer.
func (set *Set) arrived(members *membership.Members, from ID, theirs dbadapter.Timestamp, now time.Time, records []dbadapter.Hashed) *Arrival {
	return &Arrival{
		from: from, theirs: theirs, members: members, Routed: Routed{Records: records},
		refused: set.examineAll(members, from, now, records), verdicts: make([]reconcile.Verdict, len(records)),
	}
}

// Routed is records of a writer, who sends them to a host.
type Routed struct {
	Records []dbadapter.Hashed
	// Over, where it is not empty, has for each record the version that must be held, whose place it is to take.
	Over []*dbadapter.Version
	// Newer, where it is not empty, says of each record whether it was later than what was held a moment
	// before. It may be held since.
	Newer []bool
	// Together: all records are committed, or none.
	Together bool
	// Earliest, unless it is 0, is the earliest date of the import that the records are of.
	Earliest dbadapter.Timestamp
}

// AdmitRouted admits records of a writer by the one admission, and lists no refusal: their writer
// hears of it. dbadapter.ErrConflict: another record was committed in the place of one.
func (set *Set) AdmitRouted(ctx context.Context, from ID, r Routed) ([]reconcile.Verdict, error) {
	a := set.arrived(set.ns.Members(), from, 0, set.ns.node.Now(), r.Records)
	a.way, a.Routed = byRoute, r
	err := set.let(ctx, set.gc.Past(), a)
	return a.verdicts, err
}

// slice is a part of the records, which have no conditions.
func (a *Arrival) slice(first, last int) *Arrival {
	part := *a
	part.Records, part.refused, part.verdicts = a.Records[first:last], a.refused[first:last], a.verdicts[first:last]
	return &part
}

// Arrived examines a push that a peer has passed on, or, directly, one that it has made
// itself. Its records are examined as those of a sync. It commits nothing and remembers no
// refusal: what a push does not bring, a sync does.
func (set *Set) Arrived(from ID, data []byte, directly bool) (*Arrival, push.Verdict, error) {
	members, now := set.ns.Members(), set.ns.node.Now()
	if !members.Admits(from, now) {
		return nil, push.Refused, ErrDenied
	}
	if err := set.ns.PausedWith(from); err != nil {
		return nil, push.Ignored, err
	}
	if _, two := set.ns.twins.Of(from, now); two { // as in a sync
		return nil, push.Ignored, reconcile.ErrTwin
	}
	if err := set.takes(); err != nil {
		return nil, push.Ignored, err
	}
	m, err := wire.ParsePush(data)
	if err != nil {
		return nil, push.Refused, err
	}
	records := make([]dbadapter.Hashed, len(m.Records))
	for i, r := range m.Records {
		if records[i], err = dbadapter.Hash(set.Keys.Hasher, r); err != nil {
			return nil, push.Refused, err
		}
	}
	if (len(m.Origin) == 0) != directly {
		return nil, push.Refused, fmt.Errorf("%w: a push of %d bytes of origin", wire.ErrFrame, len(m.Origin))
	}
	origin := ID(m.Origin)
	if directly {
		origin = from
	}
	if origin == set.ns.node.ID {
		return nil, push.Ignored, nil
	}
	if !members.Has(origin, RoleRead) {
		set.pushes.Unknown(from)
		return nil, push.Ignored, nil
	}
	if !set.ns.pledges(origin) { // what it gives is taken in a sync with it, where it hears of a refusal
		return nil, push.Ignored, nil
	}
	a := set.arrived(members, from, 0, now, records)
	a.began, a.way = set.tenure.term(), byPush
	for _, why := range a.refused {
		switch {
		case why == nil:
			continue
		case why.Reason == wire.ReasonSignature:
			return nil, push.Refused, why.Err
		}
		return nil, push.Ignored, why.Err
	}
	set.pushes.Heard(from, origin, m)
	return a, push.Taken, nil
}

// CommitArrivals commits what pushes have brought, unless the list of members or a
// pause that has come since they were examined forbids it. Records that the floor
// keeps out, or that find their index full, are left to the next sync. That sync
// says so to the peer.
func (set *Set) CommitArrivals(ctx context.Context, arrivals []*Arrival) error {
	arrivals = slices.DeleteFunc(arrivals, func(a *Arrival) bool { return set.ns.PausedWith(a.from) != nil })
	if err := set.let(ctx, set.gc.Past(), arrivals...); !errors.Is(err, ErrNotHost) {
		return err
	}
	return nil // it was a host until now: what is pushed is for others
}
