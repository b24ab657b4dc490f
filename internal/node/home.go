package node

import (
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Home is the shard of a key; 0 in a namespace that is one shard. The key of a body or a hint names it.
func (ns *Namespace) Home(key []byte) placement.Shard {
	if ns.rule == nil {
		return 0
	}
	if shard, named := bodies.Shard(key); named && ns.Bodied() && int(shard) < ns.rule.Shards {
		return shard
	}
	return ns.rule.Home(key, dbadapter.HomeHash(ns.secret, key))
}

// placedIn reports whether a record of the key may be in the shard.
func (ns *Namespace) placedIn(key []byte, shard placement.Shard) bool {
	return ns.rule == nil || ns.Home(key) == shard
}

// Held is this node's set of a shard, or nil.
func (ns *Namespace) Held(shard placement.Shard) *Set {
	for _, set := range ns.Sets() {
		if set.shard == shard {
			return set
		}
	}
	return nil
}

// Opening reports whether the node holds a shard, or is to hold it, whose set is not open.
func (ns *Namespace) Opening(shard placement.Shard) bool {
	state := ns.state.Load()
	at, has := state.find(shard)
	return ns.Held(shard) == nil && (has && !state.Shards[at].Dropped || ns.Row(shard).IsHost(ns.node.ID))
}

// settled reports whether the set is whole: it has all that it must have. (4)
func (set *Set) settled() bool { return !set.gc.Recovering() }

// Settled is settled.
func (set *Set) Settled() bool { return set.settled() }

// WholeHere is this node's set of a shard, if it is a whole host; or nil.
func (ns *Namespace) WholeHere(shard placement.Shard) *Set {
	set, row := ns.Held(shard), ns.Row(shard)
	if set == nil || row == nil || !row.IsOld(ns.node.ID) || !set.settled() {
		return nil
	}
	return set
}

// GoesBy reports whether this node goes by what a question names. (2)
func (ns *Namespace) GoesBy(at *wire.ShardRow) bool {
	if ns.rule == nil || int(at.Shard) >= ns.rule.Shards {
		return false
	}
	row := ns.Row(placement.Shard(at.Shard))
	return row != nil && row.Name() == quorum.Name(at.Row) && ns.Gone() == at.Gone
}

// AsHost is this node's set of a shard for which a question names the row by which this node
// goes. It is nil where the node goes by another one. reconcile.ErrBusy: the set is being opened.
func (ns *Namespace) AsHost(at *wire.ShardRow) (*Set, error) {
	if !ns.GoesBy(at) || !ns.Row(placement.Shard(at.Shard)).IsHost(ns.node.ID) {
		return nil, nil //nolint:nilnil // that is the answer
	}
	if set := ns.Held(placement.Shard(at.Shard)); set != nil {
		return set, nil
	}
	return nil, reconcile.ErrBusy
}
