package node

import (
	"bytes"
	"fmt"
	"time"

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

// WholeHere is this node's set of a shard, if it is a whole host; or nil.
func (ns *Namespace) WholeHere(shard placement.Shard) *Set {
	set, row := ns.Held(shard), ns.Row(shard)
	if set == nil || row == nil || !row.IsOld(ns.node.ID) || set.Recovers() {
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
	case why != nil && why.Reason == wire.ReasonWriter:
		return fmt.Errorf("%w: %w", ErrDenied, why.Err)
	case why != nil:
		return why.Err
	case writer != "" && !v.set.Signed(writer, record):
		return unsigned(writer).Err
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

// By placement writer large values are bodies: records under keys that name their shard (package bodies).

// Bodied reports whether large values are bodies in this namespace.
func (ns *Namespace) Bodied() bool { return ns.rule != nil && ns.rule.Kind == placement.Writer }

// reserved reports whether a key is that of a body or a hint, which no watch tells of.
func (ns *Namespace) reserved(key []byte) bool { return ns.Bodied() && bodies.Reserved(key) }

// BehindReserved is where a scan of users' keys behind a key begins.
func (ns *Namespace) BehindReserved(after []byte) []byte {
	if last := bodies.Last(); ns.Bodied() && bytes.Compare(after, last) < 0 {
		return last
	}
	return after
}

// asUsers makes what is kept of a body, or of a hint, what it is to a user: a value of its key.
func (ns *Namespace) asUsers(r *dbadapter.Record) {
	if !ns.Bodied() || !bodies.Reserved(r.Key) {
		return
	}
	if _, of, is := bodies.Names(r.Key); is {
		if r.Key = of; !r.Deleted {
			r.Value = bodies.Inline(r.Value)
		}
	} else if told, err := wire.ParsePushed(r.Value); err == nil {
		*r = told
	}
}

// Size is the size of the user's value of a record as hosts hold it, such as an entry of a kept log.
func (ns *Namespace) Size(r *dbadapter.Record) int {
	if ns.Bodied() {
		return bodies.Size(r.Value)
	}
	return len(r.Value)
}

// UsersKey is the user's key of a record, of which that of a body names it; false: it has none, as a hint's.
func (ns *Namespace) UsersKey(key []byte) (of []byte, users bool) {
	if !ns.reserved(key) {
		return key, true
	}
	_, of, users = bodies.Names(key)
	return of, users
}
