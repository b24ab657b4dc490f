package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/clocks"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Namespace is what this node has of a namespace: the list of its members, the
// clock and the state, and its sets of records. It has one set; or, if it is cut
// into shards, one for each shard that this node holds.
type Namespace struct {
	// Group is the members.
	*membership.Group
	// Control holds the list of members.
	Control Part
	// sets are the open ones, by shard. The slice is never changed; another one takes its
	// place while lifecycle is held.
	sets      atomic.Pointer[[]*Set]
	rule      *placement.Rule // how the namespace is cut into shards, of which sets are those that are held here; nil: it is not
	lifecycle lifecycle

	node     *Node
	id       dbadapter.NamespaceID
	secret   dbadapter.Secret
	name     string             // when it was opened
	self     dbadapter.WriterID // under which this node's versions name it
	creator  ID
	save     func(*State) error
	clock    *hlc.Clock
	describe func(*wire.StatusAnswer)
	// incarnation is that of the versions that this opening makes, but for those of records on a
	// condition (Asker.Make). A namespace that is dropped and joined again has forgotten what
	// its clock said.
	incarnation uint64

	// The locks of a namespace, in the order in which one caller takes several of them:
	//
	//	lifecycle  a set is opened or dropped
	//	commits    of a set: the making of a version, and its commit
	//	Group      the list of members changes, or the control namespace
	//	gc         of a set: what this node has promised of it, and may collect
	//	saving     the state changes
	saving   sync.Mutex
	state    atomic.Pointer[State]  // stored while saving is held
	over     bool                   // the namespace is being dropped: its state is not this one's any more; guarded by saving
	stating  placement.Turn         // of layouts; guarded by Group
	declares bool                   // this node states a layout now; guarded by Group
	placed   atomic.Pointer[placed] // never nil where there is a rule; stored while Group is held
	// heldBy is what the members say of the shards that they hold; stored while Group
	// is held, and never changed.
	heldBy    atomic.Pointer[map[ID]shardsHeld]
	unpledged atomic.Pointer[map[ID]bool] // the members that make no pledges; as heldBy
	audiences atomic.Uint64               // see Audiences

	twins  clocks.Twins  // of the members
	copied clocks.Copied // what members say of this node
	// views are sets without a store, by shard; see view.
	views sync.Map
	// suspected: an audit is due.
	suspected suspicion
	// otherStore: the opening found another store than the state was last beside.
	otherStore bool
}

// OpenStore opens the records of an id. The store must tell observe of each commit.
type OpenStore func(ctx context.Context, id dbadapter.NamespaceID, h dbadapter.Hasher, observe func([]dbadapter.Change)) (dbadapter.Namespace, error)

// Opening is what a driver gives to open a namespace.
type Opening struct {
	Secret dbadapter.Secret
	State  *State
	// Store is called for each set, in the order of State.Parts, and then for the control
	// namespace.
	Store OpenStore
	// Drop deletes all records of an id, durably, also those that no store has open. It is
	// needed where the namespace is cut into shards.
	Drop func(ctx context.Context, id dbadapter.NamespaceID) error
	// Save makes a state durable before it returns.
	Save func(*State) error
	// KeepList, if not nil, keeps a copy of the statements of the list of members,
	// all of which it is given. The calls follow one another. What fails it notes
	// itself: the copy lacks something then.
	KeepList func(statements [][]byte)
	// Listed is that copy, or nil if no copy was kept. It may hold statements that the
	// control namespace has lost to damage.
	Listed [][]byte
	// Committed, if not nil, is called after each commit to a set. Locks of the
	// store are held then: it must be quick, and call nothing of the store.
	Committed func(set *Set)
	// Describe, if not nil, completes the answer to a member that asks how this node is.
	Describe func(*wire.StatusAnswer)
}

// Open opens a namespace's records and its control namespace, and brings their live
// sketches up to date. It does so by the summary that was kept and the changes
// since, or by a scan.
func (n *Node) Open(ctx context.Context, o Opening) (_ *Namespace, err error) {
	if err := o.State.validate(); err != nil {
		return nil, err
	}
	self, err := n.ID.Writer()
	if err != nil {
		return nil, err
	}
	ns := &Namespace{
		id: dbadapter.NamespaceIDOf(o.Secret, o.State.Root()), secret: o.Secret, self: self, creator: ID(o.State.Creator),
		node: n, name: o.State.Name, save: o.Save, clock: hlc.New(n.Now), incarnation: n.Random(ForIncarnation),
		describe: o.Describe,
	}
	if err := ns.open(ctx, &o); err != nil {
		return nil, fmt.Errorf("open namespace %s: %w", o.State.Name, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.byID[ns.id] = ns
	for _, p := range ns.parts() {
		n.parts[p.Keys.ID] = p
	}
	return ns, nil
}

func (ns *Namespace) open(ctx context.Context, o *Opening) (err error) {
	if ns.rule, err = o.State.rule(); err != nil {
		return err
	}
	ns.state.Store(o.State)
	ns.Group = ns.newGroup(o)
	ns.lifecycle = lifecycle{store: o.Store, drop: o.Drop, committed: o.Committed}
	defer func() {
		if err != nil {
			err = errors.Join(err, ns.Close())
		}
	}()
	if err := ns.openLeft(ctx, o.State); err != nil {
		return err
	}
	if err := ns.openSets(ctx, o); err != nil {
		return err
	}
	if err := ns.Control.open(ctx, ns, reconcile.DeriveControlKeys(o.Secret, o.State.Root()), o.Store); err != nil {
		return err
	}
	if err := ns.ReadList(ctx, &o.State.Record, o.Listed); err != nil {
		return fmt.Errorf("the list of members: %w", err)
	}
	if ns.rule != nil {
		placed, err := o.State.placed(ns.rule)
		if err != nil {
			return fmt.Errorf("%w: the layout: %w", dbadapter.ErrCorrupt, err)
		}
		ns.placed.Store(placed)
	}
	if err := errors.Join(ns.readLayout(), ns.readAllShardsHeld(ctx), ns.readUnpledged(ctx)); err != nil {
		return fmt.Errorf("the list of members: %w", err)
	}
	o.State = ns.state.Load() // it may have another layout by now
	for _, p := range ns.parts() {
		ns.clock.Observe(hlc.Timestamp(p.Store.Ceiling()))
	}
	ns.clock.Observe(hlc.Timestamp(o.State.Watermark.Pledged)) // also where it holds no shard
	if err := ns.compareLogs(o.State); err != nil {
		return err
	}
	ns.rehost()
	for _, set := range ns.Sets() {
		if err := set.startCollector(ctx, o.State); err != nil {
			return err
		}
		set.recall()
	}
	return nil
}

// openSets opens the set of each shard that is held here, or the one set.
func (ns *Namespace) openSets(ctx context.Context, o *Opening) error {
	if ns.rule == nil {
		return ns.openSet(ctx, 0, reconcile.DeriveKeys(o.Secret, o.State.Creator))
	}
	for i := range o.State.Shards {
		shard := o.State.Shards[i].Shard
		if o.State.Shards[i].Dropped {
			continue
		}
		if err := ns.openSet(ctx, shard, reconcile.DeriveShardKeys(o.Secret, o.State.Root(), uint32(shard))); err != nil {
			return fmt.Errorf("shard %d: %w", shard, err)
		}
	}
	return nil
}

func (ns *Namespace) openSet(ctx context.Context, shard placement.Shard, keys reconcile.Keys) error {
	set := &Set{shard: shard}
	if err := set.open(ctx, ns, keys); err != nil {
		return err
	}
	ns.put(append(slices.Clone(ns.Sets()), set))
	return nil
}

// Close closes the records and the control namespace.
func (ns *Namespace) Close() (failed error) {
	ns.lifecycle.Lock()
	defer ns.lifecycle.Unlock()
	ns.lifecycle.closed = true
	for _, set := range ns.lifecycle.gone() {
		failed = errors.Join(failed, set.Store.Close())
	}
	for _, p := range ns.parts() {
		if p.Store != nil { // an opening can end before
			failed = errors.Join(failed, p.Store.Close())
		}
	}
	return failed
}

// Self is this node's id.
func (ns *Namespace) Self() ID { return ns.node.ID }

// Time is this node's wall clock.
func (ns *Namespace) Time() time.Time { return ns.node.Now() }

// NewIncarnation draws one.
func (ns *Namespace) NewIncarnation() uint64 { return ns.node.Random(ForIncarnation) }

// Random fills b, whose length is a multiple of 8, with random bytes.
func (ns *Namespace) Random(b []byte, p Purpose) { ns.node.random(b, p) }

// ID is the hash of the namespace's secret and its creator, by which its members know it.
func (ns *Namespace) ID() dbadapter.NamespaceID { return ns.id }

// Sets are the namespace's sets of records as of now, by shard: one, which stays, if it is
// not cut into shards. The slice must not be changed.
func (ns *Namespace) Sets() []*Set {
	if sets := ns.sets.Load(); sets != nil {
		return *sets
	}
	return nil
}

// put makes these the open sets, in the order of their shards.
func (ns *Namespace) put(sets []*Set) {
	slices.SortFunc(sets, func(a, b *Set) int { return int(a.shard) - int(b.shard) })
	ns.sets.Store(&sets)
}

// parts are the sets and the control namespace.
func (ns *Namespace) parts() (all []*Part) {
	for _, set := range ns.Sets() {
		all = append(all, &set.Part)
	}
	return append(all, &ns.Control)
}

// Ahead is by how much the next version would be further ahead of the machine's
// clock than the namespace allows. It is 0 where it would not.
func (ns *Namespace) Ahead() time.Duration {
	allowed := ns.node.Now().Add(ns.Members().Policy().MaxSkew)
	return max(0, ns.clock.Latest().Time().Sub(allowed))
}

// update changes the namespace's state: fn edits a copy, which becomes durable
// before any decision rests on it.
func (ns *Namespace) update(fn func(s *State) error) error {
	ns.saving.Lock()
	defer ns.saving.Unlock()
	if ns.over {
		return dbadapter.ErrClosed
	}
	next := ns.state.Load().clone()
	next.Seeds = nil // they are in the control namespace since the opening
	if err := fn(next); err != nil {
		return err
	}
	if err := next.validate(); err != nil {
		return err
	}
	if err := ns.save(next); err != nil {
		return fmt.Errorf("save the state of %s: %w", next.Name, err)
	}
	ns.state.Store(next)
	return nil
}

// Abandon begins a drop, which mark makes durable. No change of the members is
// saved from then on: the folder may be another namespace's by then.
func (ns *Namespace) Abandon(mark func() error) error {
	h := ns.Hold()
	defer h.Release()
	ns.saving.Lock()
	defer ns.saving.Unlock()
	if err := mark(); err != nil {
		return err
	}
	h.End()
	ns.over = true
	ns.node.Forget(ns)
	return nil
}

// Rule is how the namespace is cut into shards; nil: it is not. It must not be changed.
func (ns *Namespace) Rule() *placement.Rule { return ns.rule }

// Twins lists the members whose identity two nodes run with, by id.
func (ns *Namespace) Twins() []clocks.Twin { return ns.twins.List(ns.node.Now()) }

// Copied is the member that has said last, of late, that another node runs with this
// one's identity, and when; nil: none has.
func (ns *Namespace) Copied() *status.Twinned { return ns.copied.By(ns.node.Now()) }

// Located reports whether hosts feed a locator: all nodes hear then which keys there are.
func (ns *Namespace) Located() bool { return ns.rule != nil && ns.rule.Locator }

// SetPaused takes the namespace out of all syncs, of its records and of its list of
// members, or lets it take part again. It is durable when SetPaused returns. Syncs that
// run are the driver's to end.
func (ns *Namespace) SetPaused(paused bool) error {
	if ns.Paused() == paused {
		return nil
	}
	if err := ns.update(func(s *State) error { s.Paused = paused; return nil }); err != nil {
		return err
	}
	ns.node.Schedule.Wake()
	ns.audiences.Add(1) // members are told which namespaces take pushes
	for _, set := range ns.Sets() {
		set.pushable()
	}
	return nil
}

// Paused reports whether the namespace takes part in no syncs.
func (ns *Namespace) Paused() bool { return ns.state.Load().Paused }

// PausedWith is ErrPaused where the namespace takes part in no syncs with a peer: it is
// paused, or the peer is. A peer that calls is told no more than that; it must be known
// to be a member first.
func (ns *Namespace) PausedWith(remote ID) error {
	if ns.Paused() {
		return fmt.Errorf("%w: the namespace is paused on this node; resume it with: syncd resume %s", reconcile.ErrPaused, ns.Members().Name())
	}
	return ns.peerPaused(remote)
}

// peerPaused is ErrPaused where the peer is paused. Routed questions go on while the namespace
// is: by them members read and write its shards.
func (ns *Namespace) peerPaused(remote ID) error {
	if ns.node.Config.Paused != nil && ns.node.Config.Paused(remote) {
		return fmt.Errorf("%w: the peer is paused on this node; resume it with: syncd peer resume %s", reconcile.ErrPaused, remote)
	}
	return nil
}
