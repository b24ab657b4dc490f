package node

import (
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// View is a set as a node sees it that may not hold it: its keys and its rights, without records.
type View struct{ set *Set }

// View is one of the namespace's sets.
func (ns *Namespace) View(shard placement.Shard) View { return View{ns.view(shard)} }

// view is a shard's set with its keys and rights, and no store. It is made once: what it is
// made of does not change while the namespace is open.
func (ns *Namespace) view(shard placement.Shard) *Set {
	if known, ok := ns.views.Load(shard); ok {
		return known.(*Set)
	}
	keys := reconcile.DeriveKeys(ns.secret, []byte(ns.creator))
	if ns.rule != nil {
		keys = reconcile.DeriveShardKeys(ns.secret, ns.state.Load().Root(), uint32(shard))
	}
	if ns.node.Weaken != nil {
		keys.Hasher = ns.node.Weaken(keys.Hasher)
	}
	set := &Set{Part: Part{Keys: keys, ns: ns}, shard: shard}
	set.Part.set = set
	made, _ := ns.views.LoadOrStore(shard, set)
	return made.(*Set)
}

// Hasher makes the digests of the set's records.
func (v View) Hasher() dbadapter.Hasher { return v.set.Keys.Hasher }

// Ask is Set.Ask. The greeting promises nothing of the set.
func (v View) Ask(remote ID, patience time.Duration, q wire.Question) (*wire.Ask, error) {
	return v.set.begin(remote, v.set.ns.routedGreeting(), patience, q)
}

// Lists is what a member that has the same list, and goes by the same row, greets with beside its answer.
func (v View) Lists() [16]byte { return v.set.Lists() }

// Answered is Set.Answered.
func (v View) Answered(remote ID, ask *wire.Ask, m wire.Message) (*wire.Reply, error) {
	return v.set.Answered(remote, ask, m)
}

// Examine says why a record of a peer must stay outside the set, or nil. ErrDenied: by this
// node's list its writer may not write, and that list may be the older one.
func (v View) Examine(remote ID, record *dbadapter.Record) error {
	writer, why := v.set.examine(v.set.ns.Members(), remote, v.set.ns.node.Now(), record)
	switch {
	case why != nil && why.reason == wire.ReasonWriter:
		return fmt.Errorf("%w: %w", ErrDenied, why.err)
	case why != nil:
		return why.err
	case writer != "" && !v.set.signed(writer, record):
		return unsigned(writer).err
	}
	return nil
}

// Authorize signs writes of this node, if its role lets it write.
func (v View) Authorize(writes []dbadapter.Write) error { return v.set.authorize(writes) }

// Expiry is the first whole millisecond that is a time to live from now.
func (v View) Expiry(ttl time.Duration) dbadapter.Timestamp { return v.set.expiry(ttl) }

// Covers reports whether this node's role covers a record with a date. If not, from
// is the date from which on it does. floor: up to when hosts take none.
func (v View) Covers(date time.Time, floor dbadapter.Timestamp) (from time.Time, covers bool) {
	at := dbadapter.TimestampAt(date)
	least := v.set.takenFrom(at, floor)
	return DateFrom(least), least == at
}
