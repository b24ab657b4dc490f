package peer

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Policy is what the members of a namespace agree on. It is fixed when the namespace is
// made and handed over with an invitation. The zero value is the safe one.
type Policy struct {
	// Unsigned turns signatures off, their making and their checking, for
	// members that trust one another not to forge. A node then accepts records
	// only from peers that have the role write themselves.
	Unsigned bool
	// MaxSkew is how far a version may be ahead of the receiver's clock.
	// 0 means DefaultMaxSkew, which the namespace then has.
	MaxSkew time.Duration
	// Placement cuts the namespace into shards, of which each member holds some; nil: it
	// is one, which all members hold.
	Placement *Placement
}

// Namespace is a set of records that this node keeps equal with the other
// members'. All its methods may be called from several goroutines. Byte slices
// passed in may be reused after the call; those returned are the caller's.
type Namespace struct {
	node *Node
	core *node.Namespace // decides
	id   dbadapter.NamespaceID

	ctx    context.Context // over when the namespace closes
	cancel context.CancelFunc
	gate   *gate // all uses of the records are inside

	held    atomic.Pointer[[]*shard] // by number; the slice is never changed
	moving  moving
	synced  sync.Map // ID to the time.Time when the data were last synced well with a member, since the opening
	tending sync.Mutex
	hosts   *shards.Shards // nil where the namespace is not cut into shards
}

// openNamespace opens a namespace's records and brings its sketch up to date.
func (n *Node) openNamespace(ctx context.Context, secret dbadapter.Secret, s *node.State) (*Namespace, error) {
	id := dbadapter.NamespaceIDOf(secret, s.Root())
	listed, keepList := folder.OpenListCopy(n.log.With(slog.String("ns", s.Name)), n.dir, id)
	core, err := n.core.Open(ctx, node.Opening{
		Secret: secret, State: s, Store: n.watch(id, s.Name), Save: n.saveTo(id),
		Committed: n.committed, Drop: n.store.Drop,
		Describe: func(a *wire.StatusAnswer) { n.describe(id, a) },
		Listed:   listed, KeepList: keepList,
	})
	if err != nil {
		return nil, err
	}
	ns := &Namespace{node: n, core: core, id: core.ID(), gate: newGate()}
	if ahead := core.Ahead(); ahead > 0 {
		n.log.Warn("the newest version is ahead of this machine's clock by more than the namespace allows: writes are refused until the clock has come so far; if the clock is wrong, set it; if it was wrong when that version was written, restamp the namespace (syncd restamp)",
			slog.String("ns", s.Name), slog.Duration("ahead", ahead))
	}
	if core.OtherStore() && !n.restored {
		n.log.Warn("the namespace's records were restored from a copy, or its store was made anew: it may lack what this node held once; syncs with members bring it back", logNamespace(ns))
	}
	ns.ctx, ns.cancel = context.WithCancel(n.ctx)
	for _, set := range core.Sets() {
		ns.begin(set)
	}
	if ns.core.Rule() != nil {
		if err := ns.openShards(); err != nil {
			return nil, errors.Join(err, ns.close())
		}
	}
	if n.host != nil { // else open does it later
		ns.followShards()
	}
	return ns, nil
}

// saveTo makes a namespace's state durable in its folder, if the node has one.
func (n *Node) saveTo(id dbadapter.NamespaceID) func(*node.State) error {
	if n.dir == "" {
		return func(*node.State) error { return nil }
	}
	path, owner := folder.Path(n.dir, id), n.owner()
	return func(s *node.State) error { return folder.SaveState(path, owner, s) }
}

// close ends what runs in the namespace and closes its records.
func (ns *Namespace) close() error {
	ns.end()
	ns.closeShards()
	for _, sh := range ns.shards() {
		sh.close()
	}
	ns.node.core.Forget(ns.core)
	if err := ns.core.Rest(context.Background()); err != nil {
		ns.node.log.Warn("the next start will take longer", logError(err))
	}
	return ns.core.Close()
}

// end ends what runs in the namespace.
func (ns *Namespace) end() {
	ns.gate.close()
	ns.cancel()
	<-ns.gate.empty
}

// enter begins a use of the namespace; ns.gate.leave ends it.
func (ns *Namespace) enter(what string) error {
	if !ns.gate.enter() {
		return fmt.Errorf("%s in %s: %w", what, ns.Name(), ErrClosed)
	}
	return nil
}

// within runs a call, and names it with the namespace in an error. The context is over when the
// caller's is, or when the namespace closes.
func (ns *Namespace) within(ctx context.Context, what string, run func(context.Context) error) error {
	if !ns.gate.enter() {
		return fmt.Errorf("%s %s: %w", what, ns.Name(), ErrClosed)
	}
	defer ns.gate.leave()
	ctx, cancel := ns.bind(ctx)
	defer cancel()
	err := run(ctx)
	if cause := context.Cause(ctx); errors.Is(err, context.Canceled) && errors.Is(cause, ErrClosed) {
		err = cause // else it would look as if the caller had given up
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, ns.Name(), err)
	}
	return nil
}

// listed yields what a call lists, and at the end the error of within.
func listed[T any](ctx context.Context, ns *Namespace, what string, list func(context.Context) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err := ns.within(ctx, what, func(ctx context.Context) error {
			for v, err := range list(ctx) {
				if ctx.Err() != nil {
					err = context.Cause(ctx)
				}
				if err != nil {
					return ns.orRemoved(err)
				}
				if !yield(v, nil) {
					return nil
				}
			}
			return nil
		})
		if err != nil {
			var none T
			yield(none, err)
		}
	}
}

// bind makes a context that is over when the caller's is, or when the
// namespace closes.
func (ns *Namespace) bind(ctx context.Context) (context.Context, context.CancelFunc) {
	return bind(ctx, ns.ctx)
}

// bind makes a context that is over when ctx is, or when the life of what it is used in
// is. In the second case its cause is ErrClosed.
func bind(ctx, life context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(life, func() { cancel(ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// Name is the namespace's alias on this node.
func (ns *Namespace) Name() string { return ns.core.Members().Name() }

// ID is the hash of the namespace's secret and its creator, by which its members
// know it.
func (ns *Namespace) ID() dbadapter.NamespaceID { return ns.id }

// Role is this node's; 0: it is not a member any more.
func (ns *Namespace) Role() Role {
	if ns.core.Removal() != nil {
		return 0
	}
	return Role(ns.core.Members().Role(node.ID(ns.node.self.id)))
}

// Policy is what the members have agreed on.
func (ns *Namespace) Policy() Policy { return policyOf(ns.core) }

// Info describes the namespace as it is now.
func (ns *Namespace) Info() status.Namespace {
	members := ns.core.Members()
	info := status.Namespace{
		Name:     members.Name(),
		ID:       hex.EncodeToString(ns.id[:]),
		Role:     ns.Role().String(),
		Paused:   ns.core.Paused(),
		Members:  len(members.Members()),
		Verified: ns.lastProof().At,
		Ahead:    ns.core.Ahead(),
		Declined: ns.declined(),
		Lost:     ns.Lost(),
		Damage:   ns.node.damage.Of(ns.id),
		Silent:   ns.silent(),
		Removed:  ns.core.Removal(),
		Twins:    ns.twins(),
		Twinned:  ns.core.Copied(),
	}
	if r, err := ns.core.Replicas(); err == nil {
		info.Shards = &r
	}
	for _, sh := range ns.shards() {
		digest, records, _ := sh.set.Live.State()
		info.Records += int64(records)
		info.Digest = info.Digest.Add(digest)
		info.Rejected += sh.set.RejectedCount()
		if latest := sh.set.Store.Latest(); latest != 0 && latest.Time().After(info.Clock) {
			info.Clock = latest.Time()
		}
	}
	for _, set := range ns.core.Logs() {
		info.Conflicts += set.Store.KeptCount(dbadapter.KeptConflict)
		info.SetAside += set.Store.KeptCount(dbadapter.KeptSetAside)
	}
	return info
}

// declined are the peers that decline this node's records, by id.
func (ns *Namespace) declined() []status.DeclinedBy {
	list := []status.DeclinedBy{}
	for _, sh := range ns.shards() {
		for _, d := range sh.set.Declined() {
			id := d.Peer
			at, known := slices.BinarySearchFunc(list, id, func(d status.DeclinedBy, id ID) int { return cmp.Compare(d.Peer, id) })
			if !known {
				list = slices.Insert(list, at, status.DeclinedBy{Peer: id})
			}
			list[at].Records += d.Records
		}
	}
	return list
}
