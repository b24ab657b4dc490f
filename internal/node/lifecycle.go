package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/reconcile"
)

// Sets of shards come and go while the namespace is open. A driver asks Moves with
// each round, and when the list of members has changed. It then calls TakeShard for
// the shards to take, Leave for those to leave, and Discard for what Discards
// names.
//
//	TakeShard the state has the shard        then the store is opened, and the set takes records
//	Leave     the state has the shard as dropped, and no record enters any more
//	Discard   the records are deleted; where the kept log is empty, too, the store is, and then
//	          the state forgets the shard
//
// So a crash leaves no records behind that the state does not know of, and a shard that is
// held again begins empty. The kept log is the node's, and stays (package quorum, 15).

// lifecycle is what sets are opened with. It is held while a set comes or goes.
type lifecycle struct {
	sync.Mutex
	store     OpenStore
	drop      func(ctx context.Context, id dbadapter.NamespaceID) error
	committed func(set *Set)
	// left are the sets that were left and whose stores are still open. A store
	// stays open as long as it holds records, or entries in its kept log.
	left   atomic.Pointer[[]*Set]
	closed bool
}

func (c *lifecycle) gone() []*Set {
	if left := c.left.Load(); left != nil {
		return *left
	}
	return nil
}

// leave and forget change what was left. The lock is held.
func (c *lifecycle) leave(set *Set) {
	left := append(slices.Clone(c.gone()), set)
	c.left.Store(&left)
}

func (c *lifecycle) forget(set *Set) {
	left := slices.DeleteFunc(slices.Clone(c.gone()), func(other *Set) bool { return other == set })
	c.left.Store(&left)
}

// Moves is which shards this node is to take, and which sets it may leave. It may
// leave a set that it has handed over, when it is no host of the shard.
func (ns *Namespace) Moves() (take []placement.Shard, leave []*Set) {
	if ns.rule == nil || !ns.Admits(ns.node.ID) {
		return nil, nil
	}
	layout := ns.placed.Load().layout
	if layout == nil {
		return nil, nil
	}
	sets := ns.Sets()
	for s := range placement.Shard(ns.rule.Shards) {
		if layout.Has(s, ns.node.ID) && !slices.ContainsFunc(sets, func(set *Set) bool { return set.shard == s }) && !ns.beingDropped(s) {
			take = append(take, s)
		}
	}
	for _, set := range sets {
		if set.tenure.mayEnd() {
			leave = append(leave, set)
		}
	}
	return take, leave
}

// beingDropped reports whether the records of a shard are to be deleted still.
func (ns *Namespace) beingDropped(shard placement.Shard) bool {
	return slices.ContainsFunc(ns.lifecycle.gone(), func(set *Set) bool { return set.shard == shard && !set.emptied.Load() })
}

// Discards are the sets that were left, and of which something is to be deleted.
func (ns *Namespace) Discards() (sets []*Set) {
	for _, set := range ns.lifecycle.gone() {
		if !set.emptied.Load() || set.Kept() == 0 {
			sets = append(sets, set)
		}
	}
	return sets
}

// Logs are the sets with a kept log here, by shard: those that are held, and those that were left.
func (ns *Namespace) Logs() []*Set {
	logs := slices.Concat(ns.Sets(), ns.lifecycle.gone()) // in this order: a set is among the latter before it is no more among the former
	slices.SortStableFunc(logs, func(a, b *Set) int { return int(a.shard) - int(b.shard) })
	return slices.Compact(logs)
}

// ErrNotHandedOver: this node holds shards that its hosts may lack something of.
var ErrNotHandedOver = errors.New("this node holds shards that it has not handed over")

// HandedOver says whether this node could go without a loss: ErrNotHandedOver where there are
// other members and a set that this node may not leave yet, or has not left as a member.
func (ns *Namespace) HandedOver() error {
	if ns.rule == nil || len(ns.Others()) == 0 {
		return nil
	}
	held, leaving := 0, false
	for _, set := range ns.Sets() {
		if leaving = true; !set.tenure.mayEnd() {
			held++
		}
	}
	said := (*ns.heldBy.Load())[ns.node.ID]
	leaving = leaving || slices.ContainsFunc(said.Shards, func(b byte) bool { return b != 0 })
	switch {
	case held == 0 && leaving && ns.Outside() == nil:
		return fmt.Errorf("%w: the hosts have them all, and it is about to say that it holds none: try again in some seconds", ErrNotHandedOver)
	case held == 0:
		return nil
	}
	if ns.Outside() != nil {
		return fmt.Errorf("%w: %d of %d; it is no member any more, and no host can take them over from it: --force deletes them", ErrNotHandedOver, held, ns.rule.Shards)
	}
	if !ns.Members().Has(ns.node.ID, RoleWrite) {
		return fmt.Errorf("%w: %d of %d; others take them over: try again once syncd status counts fewer", ErrNotHandedOver, held, ns.rule.Shards)
	}
	return fmt.Errorf("%w: %d of %d; others take them over once this node only reads, here or at an admin above it: syncd member set %s %s --role read",
		ErrNotHandedOver, held, ns.rule.Shards, ns.Members().Name(), ns.node.ID)
}

// TakeShard makes this node, a host of a shard by the list as it is now, one that
// holds it, durably. It opens the shard's set, which is empty and recovers until it
// is found equal with another one. If the error is reconcile.ErrBusy, this node is
// no host any more, or is dropping the shard still.
func (ns *Namespace) TakeShard(ctx context.Context, shard placement.Shard) (set *Set, err error) {
	ns.lifecycle.Lock()
	defer ns.lifecycle.Unlock()
	if set, err = ns.takeShard(ctx, shard); err != nil {
		return nil, fmt.Errorf("take shard %d of namespace %s: %w", shard, ns.Members().Name(), err)
	}
	return set, nil
}

// takeShard is TakeShard; lifecycle is held.
func (ns *Namespace) takeShard(ctx context.Context, shard placement.Shard) (_ *Set, err error) {
	switch {
	case ns.rule == nil:
		return nil, ErrOneShard
	case int(shard) >= ns.rule.Shards:
		return nil, fmt.Errorf("%w: the last one is %d", ErrInvalid, ns.rule.Shards-1)
	case ns.lifecycle.closed:
		return nil, dbadapter.ErrClosed
	case slices.ContainsFunc(ns.Sets(), func(set *Set) bool { return set.shard == shard }):
		return nil, fmt.Errorf("%w: it is held already", ErrInvalid)
	case ns.beingDropped(shard):
		return nil, fmt.Errorf("%w: it is being dropped", reconcile.ErrBusy)
	}
	if err := ns.addShard(shard); err != nil {
		return nil, err
	}
	for _, log := range ns.lifecycle.gone() { // the kept log goes on in the new set
		if log.shard == shard {
			ns.lifecycle.forget(log)
			if err := log.Store.Close(); err != nil {
				return nil, err
			}
		}
	}
	set := &Set{shard: shard}
	if err := set.open(ctx, ns, reconcile.DeriveShardKeys(ns.secret, ns.state.Load().Root(), uint32(shard))); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, set.Store.Close())
		}
	}()
	ns.clock.Observe(hlc.Timestamp(set.Store.Ceiling()))
	if err := ns.begin(ctx, set); err != nil {
		return nil, err
	}
	ns.node.mu.Lock()
	defer ns.node.mu.Unlock()
	if ns.node.byID[ns.id] == ns { // else it is being closed
		ns.node.parts[set.Keys.ID] = &set.Part
	}
	return set, nil
}

// addShard makes this node one that holds a shard, durably, if it is a host by the layout of now.
func (ns *Namespace) addShard(shard placement.Shard) error {
	defer ns.Hold().Release()
	if layout := ns.placed.Load().layout; layout == nil || !layout.Has(shard, ns.node.ID) {
		return fmt.Errorf("%w: the list of members has changed, and this node is no host of it", reconcile.ErrBusy)
	}
	return ns.update(func(s *State) error { s.addShard(shard); return nil })
}

// begin makes an open set one of the namespace's.
func (ns *Namespace) begin(ctx context.Context, set *Set) error {
	defer ns.Hold().Release()
	err := ns.update(func(s *State) error {
		set.in(s).Log = logs(&set.Part)
		return nil
	})
	if err != nil {
		return err
	}
	if err := set.startCollector(ctx, ns.state.Load()); err != nil {
		return err
	}
	if err := set.gc.Update((*watermark.Watermark).TakeOverAll); err != nil {
		return err
	}
	set.rehost()
	if err := set.gc.Update(set.relist); err != nil {
		return err
	}
	ns.put(append(slices.Clone(ns.Sets()), set))
	return nil
}

// Leave ends that this node holds the set's shard, durably: no record enters it any more,
// and no sync of it begins. Discard is to follow. reconcile.ErrBusy: it may not be left; a
// record has come, or the list of members has changed.
func (ns *Namespace) Leave(set *Set) error {
	ns.lifecycle.Lock()
	defer ns.lifecycle.Unlock()
	if err := ns.leave(set); err != nil {
		return fmt.Errorf("leave shard %d of namespace %s: %w", set.shard, ns.Members().Name(), err)
	}
	return nil
}

func (ns *Namespace) leave(set *Set) error {
	if ns.rule == nil {
		return ErrOneShard
	}
	set.commits.Lock()
	defer set.commits.Unlock()
	defer ns.Hold().Release()
	var err error
	set.gc.View(func(w *watermark.Watermark) { err = ns.end(set, w.State()) })
	if err != nil {
		return err
	}
	ns.lifecycle.leave(set)
	ns.put(slices.DeleteFunc(slices.Clone(ns.Sets()), func(other *Set) bool { return other == set }))
	ns.node.mu.Lock()
	defer ns.node.mu.Unlock()
	if ns.node.parts[set.Keys.ID] == &set.Part {
		delete(ns.node.parts, set.Keys.ID)
	}
	return nil
}

// end ends the set's tenure, durably, with what is durable of its watermark by now.
func (ns *Namespace) end(set *Set, mark watermark.State) error {
	if !set.tenure.end() {
		return fmt.Errorf("%w: its hosts may lack something of it", reconcile.ErrBusy)
	}
	least := max(mark.Pledged, mark.Floor, dbadapter.Timestamp(ns.clock.Latest()))
	return ns.update(func(s *State) error {
		one := set.in(s)
		one.Dropped, one.Watermark.Recovering, one.Watermark.Lost = true, true, false
		// A set of this shard that begins later makes no version up to what this
		// one has promised or written. The store's ceiling, which is ahead of that,
		// would keep out what members write meanwhile. It goes on with the numbers
		// of this one's pledges. By later pledges of its own it would know itself
		// as a copy that has lost records.
		s.Watermark.Pledged, s.Watermark.Serial = max(s.Watermark.Pledged, least), max(s.Watermark.Serial, mark.Serial)
		return nil
	})
}

// Discard deletes the records of a set that was left; where its kept log is empty, too, all of
// it. What still reads them gets an error.
func (ns *Namespace) Discard(ctx context.Context, set *Set) error {
	ns.lifecycle.Lock()
	defer ns.lifecycle.Unlock()
	if ns.lifecycle.closed {
		return nil // what follows the next opening does it
	}
	if !slices.Contains(ns.lifecycle.gone(), set) {
		return fmt.Errorf("%w: shard %d of namespace %s was not left", ErrInvalid, set.shard, ns.Members().Name())
	}
	if err := ns.discard(ctx, set); err != nil {
		return fmt.Errorf("drop shard %d of namespace %s: %w", set.shard, ns.Members().Name(), err)
	}
	return nil
}

func (ns *Namespace) discard(ctx context.Context, set *Set) error {
	if !set.log {
		if err := set.Store.Close(); err != nil {
			return err
		}
	}
	if set.Kept() > 0 {
		log, err := ns.openLog(ctx, ns.state.Load(), set)
		if err != nil {
			return err
		}
		return log.empty(ctx)
	}
	if err := set.Store.Close(); err != nil {
		return err
	}
	if err := ns.lifecycle.drop(ctx, set.Keys.ID); err != nil {
		return err
	}
	if err := ns.update(func(s *State) error { s.forget(set.shard); return nil }); err != nil {
		return err
	}
	ns.lifecycle.forget(set)
	return nil
}

// openLog opens a set that was left anew, for its kept log alone. Whoever still
// reads the records must not see how they go.
func (ns *Namespace) openLog(ctx context.Context, s *State, set *Set) (*Set, error) {
	if set.log {
		return set, nil
	}
	log := &Set{shard: set.shard, log: true}
	log.tenure.over = true
	if err := log.open(ctx, ns, reconcile.DeriveShardKeys(ns.secret, s.Root(), uint32(set.shard))); err != nil {
		return nil, fmt.Errorf("shard %d: %w", set.shard, err)
	}
	ns.lifecycle.forget(set)
	ns.lifecycle.leave(log)
	return log, nil
}

// empty deletes the records of a set that was left, some at a time: no other one enters.
func (set *Set) empty(ctx context.Context) error {
	for {
		writes, err := set.some(ctx)
		if err != nil {
			return err
		}
		if len(writes) == 0 {
			set.emptied.Store(true)
			return nil
		}
		if _, err := set.Apply(ctx, writes); err != nil {
			return err
		}
	}
}

// some takes out some records.
func (set *Set) some(ctx context.Context) (writes []dbadapter.Write, err error) {
	snap, err := set.Store.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	bytes := 0
	for r, err := range snap.Scan(ctx, nil, nil) {
		if err != nil {
			return nil, err
		}
		writes = append(writes, dbadapter.Write{Record: r, Action: dbadapter.Collect})
		if bytes += r.Weight(); len(writes) == dbadapter.MaxBatch || bytes >= dbadapter.MaxBatchBytes {
			break
		}
	}
	return writes, nil
}

// openLeft opens what is left of shards that were dropped, before the sets are
// opened. That is a kept log, and records that a crash has left.
func (ns *Namespace) openLeft(ctx context.Context, s *State) error {
	var over []*Set
	for i := range s.Shards {
		if !s.Shards[i].Dropped {
			continue
		}
		set, err := ns.openLog(ctx, s, &Set{shard: s.Shards[i].Shard})
		if err != nil {
			return err
		}
		if set.Kept() == 0 {
			over = append(over, set)
		}
	}
	for _, set := range over {
		ns.lifecycle.forget(set)
		if err := errors.Join(set.Store.Close(), ns.lifecycle.drop(ctx, set.Keys.ID)); err != nil {
			return err
		}
		s.forget(set.shard)
	}
	if len(over) == 0 {
		return nil
	}
	return ns.save(s)
}
