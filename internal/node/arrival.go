package node

import (
	"context"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Arrival is a push that has come and has been examined.
type Arrival struct {
	from    ID
	members *Members // the list under which it was examined
	records []dbadapter.Hashed
}

// PushVerdict is what a driver does with a push that has come.
type PushVerdict uint8

// The verdicts on pushes.
const (
	// PushIgnored: it is neither committed nor passed on.
	PushIgnored PushVerdict = iota
	// PushRefused: so is this, and the peer that passed it on is at fault.
	PushRefused
	// PushTaken: it is passed on, and committed.
	PushTaken
)

// Arrived examines a push that a peer has passed on, as records of a sync are. It
// commits nothing and remembers no refusal: what a push does not bring, a sync does.
func (ns *Namespace) Arrived(from ID, push []byte) (*Arrival, PushVerdict, error) {
	members, now := ns.Members(), ns.node.Now()
	if !members.admits(from, now) {
		return nil, PushRefused, ErrDenied
	}
	if err := ns.PausedWith(from); err != nil {
		return nil, PushIgnored, err
	}
	if _, two := ns.Twin(from); two { // as in a sync
		return nil, PushIgnored, reconcile.ErrTwin
	}
	m, err := wire.ParsePush(push)
	if err != nil {
		return nil, PushRefused, err
	}
	a := &Arrival{from: from, members: members, records: make([]dbadapter.Hashed, len(m.Records))}
	for i, r := range m.Records {
		if a.records[i], err = dbadapter.Hash(ns.Keys.Hasher, r); err != nil {
			return nil, PushRefused, err
		}
	}
	origin := ID(m.Origin)
	if origin == ns.node.ID {
		return nil, PushIgnored, nil
	}
	if !members.Has(origin, RoleRead) {
		// The list may be older than the origin: if so, the digests tell.
		return nil, PushIgnored, nil
	}
	for _, why := range ns.examineAll(members, from, now, a.records) {
		switch {
		case why == nil:
			continue
		case why.reason == wire.ReasonSignature:
			return nil, PushRefused, why.err
		}
		return nil, PushIgnored, why.err
	}
	ns.hastening.heard(ns, from, origin, m)
	return a, PushTaken, nil
}

// CommitArrivals commits what pushes have brought, unless the list of members or a pause
// that has come since they were examined forbids it. Records that the floor keeps out, or
// that find their index full, are left to the next sync, which says so to the peer.
func (ns *Namespace) CommitArrivals(ctx context.Context, arrivals []*Arrival) error {
	past := ns.past()
	ns.commits.RLock()
	defer ns.commits.RUnlock()
	floor := dbadapter.Timestamp(ns.vouching.floor.Load())
	var writes []dbadapter.Write
	for _, a := range arrivals {
		if ns.PausedWith(a.from) != nil {
			continue
		}
		refused := make([]*refusal, len(a.records))
		if members := ns.Members(); members != a.members {
			ns.examineAgain(members, a.from, a.records, refused)
		}
		for i := range a.records {
			if r := &a.records[i]; refused[i] == nil && r.Version.Clock > floor {
				ns.clock.Observe(hlc.Timestamp(r.Version.Clock)) // before the commit, as in admit
				writes = append(writes, dbadapter.Write{Record: *r, Past: past})
			}
		}
	}
	outcomes, err := ns.apply(ctx, writes)
	ns.written(writes[:len(outcomes)], outcomes)
	return err
}
