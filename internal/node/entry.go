package node

import (
	"context"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A write by placement writer is two records of one version: the record, in a shard, and
// its entry, in the set of the directory.

// Entry is the entry of a record that Make has made, in the set of the directory that r is.
func (r *Remote) Entry(record *dbadapter.Record, shard placement.Shard) (*dbadapter.Record, error) {
	hashed, err := dbadapter.Hash(r.view.Keys.Hasher, directory.EntryFor(record, shard))
	if err != nil {
		return nil, err
	}
	writes := []dbadapter.Write{{Record: hashed}}
	if err := r.view.authorize(writes); err != nil {
		return nil, err
	}
	return &writes[0].Record.Record, nil
}

// Index is the key's index in the set.
func (r *Remote) Index() dbadapter.Index { return r.view.Keys.Hasher.Index(r.key) }

// HoldHere is AskHold and Hold with this node as the host: it admits a record that it has
// made as one that another node offers.
func (r *Remote) HoldHere(ctx context.Context, record *dbadapter.Record) (route.Outcome, error) {
	q := &wire.AskHold{Shard: uint32(r.shard), Seen: true, Records: []dbadapter.Record{*record}}
	said, err := (&Routed{ns: r.ns, remote: r.ns.node.ID}).hold(ctx, q)
	if err != nil {
		return route.Outcome{}, err
	}
	return r.outcome(said, q)
}

// OwnShard is the shard in which this node writes a key that has none: the one that it is
// preferred in of those that it hosts, by the layout that counts; the key's home, if it hosts
// none.
func (ns *Namespace) OwnShard(key []byte) placement.Shard {
	layout := ns.placed.Load().layout
	if layout == nil {
		return ns.Home(key)
	}
	second, found := ns.Home(key), false
	for s := range placement.Shard(ns.rule.Shards) {
		switch hosts := layout.Hosts(s); {
		case len(hosts) > 0 && hosts[0] == ns.node.ID:
			return s
		case !found && layout.Has(s, ns.node.ID):
			second, found = s, true
		}
	}
	return second
}
