package node

import (
	"cmp"
	"context"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/route"
)

// Make makes a record of a draft, for the hosts to hold: with a version of this node above
// those of the records that the draft's writer has seen, which it names, and signed. A record that rests
// on a version has an incarnation of its own: under the common one it would supersede what another call of
// this node writes meanwhile, and hosts would let it take that one's place.
func (r *Remote) Make(d Draft) (*dbadapter.Record, error) {
	if err := cmp.Or(d.Record.Validate(), d.CheckTTL()); err != nil {
		return nil, err
	}
	r.behind(d.Seen...)
	version, err := r.ns.nextVersion()
	if err != nil {
		return nil, err
	}
	if d.If != nil {
		version.Incarnation = r.ns.node.Random(ForIncarnation)
	}
	record := d.Record.Clone()
	record.Version = version
	if d.TTL > 0 {
		record.Expires = r.view.expiry(d.TTL)
	}
	return r.signed(record, d.Seen...)
}

// signed signs a record of this node that has its version, and takes the place of those that were seen.
func (r *Remote) signed(record dbadapter.Record, seen ...*dbadapter.Record) (*dbadapter.Record, error) {
	record.Replace(seen...)
	hashed, err := dbadapter.Hash(r.view.Keys.Hasher, record)
	if err != nil {
		return nil, err
	}
	writes := []dbadapter.Write{{Record: hashed}}
	if err := r.view.authorize(writes); err != nil {
		return nil, err
	}
	return &writes[0].Record.Record, nil
}

// behind has this node's next version come behind those of records.
func (r *Remote) behind(seen ...*dbadapter.Record) {
	for _, s := range seen {
		if s != nil {
			r.ns.clock.Observe(hlc.Timestamp(s.Version.Clock))
		}
	}
}

// HoldHere is AskHold and Hold with this node as the host: it admits a record that it has
// made as one that another node offers.
func (r *Remote) HoldHere(ctx context.Context, record *dbadapter.Record, how route.Manner) (route.Outcome, error) {
	q := r.askHold(record, how)
	said, err := (&Routed{ns: r.ns, remote: r.ns.node.ID}).hold(ctx, q)
	if err != nil {
		return route.Outcome{}, err
	}
	return r.outcome(said, q)
}
