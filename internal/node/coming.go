package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile"
)

// Sets of shards come and go while the namespace is open. A driver asks Moves with each
// round, and when the list of members has changed; it then calls TakeShard for what is to come,
// and Leave and Discard for what is to go.
//
//	TakeShard the state has the shard        then the store is opened, and the set takes records
//	Leave     the state has the shard as dropped, and no record enters any more
//	Discard   the store is closed and its records are deleted; then the state forgets the shard
//
// So a crash leaves no records behind that the state does not know of, and a shard that is
// held again begins empty.

// coming is what sets are opened with. It is held while a set comes or goes; it comes before
// the sets' commits and before updating.
type coming struct {
	sync.Mutex
	store     OpenStore
	drop      func(ctx context.Context, id dbadapter.NamespaceID) error
	committed func(set *Set)
	left      []*Set // whose stores are open still
	closed    bool
}

// Moves is which shards this node is to take, and which sets it may leave: it is no host of
// them, has handed them over, and keeps nothing in them that was not decided.
func (ns *Namespace) Moves() (take []placement.Shard, leave []*Set) {
	if ns.rule == nil || !ns.Admits(ns.node.ID) {
		return nil, nil
	}
	layout := ns.placed.Load().layout
	if layout == nil {
		return nil, nil
	}
	sets, state := ns.Sets(), ns.Members().state
	for s := range placement.Shard(ns.rule.Shards) {
		_, open := slices.BinarySearchFunc(sets, s, func(set *Set, s placement.Shard) int { return int(set.shard) - int(s) })
		at, kept := state.find(s)
		if layout.Has(s, ns.node.ID) && !open && !(kept && state.Shards[at].Dropped) {
			take = append(take, s)
		}
	}
	for _, set := range sets {
		if set.leavable() {
			leave = append(leave, set)
		}
	}
	return take, leave
}

// leavable: the hosts hold all of the set, and nothing in it waits for a person.
func (set *Set) leavable() bool { return set.tenure.mayEnd() && set.Kept() == 0 }

// Lingering are the sets that this node could leave, but for what stands in their kept logs,
// which are nowhere else: a person decides about each entry first.
func (ns *Namespace) Lingering() (sets []*Set) {
	for _, set := range ns.Sets() {
		if set.tenure.mayEnd() && set.Kept() > 0 {
			sets = append(sets, set)
		}
	}
	return sets
}

// ErrNotHandedOver: this node holds shards that its hosts may lack something of.
var ErrNotHandedOver = errors.New("this node holds shards that it has not handed over")

// HandedOver says whether this node could go without a loss: ErrNotHandedOver where there are
// other members and a set that this node may not leave yet, or has not left as a member.
func (ns *Namespace) HandedOver() error {
	if ns.rule == nil || len(ns.Others()) == 0 {
		return nil
	}
	held, leaving, kept := map[placement.Shard]bool{}, false, true
	for _, set := range ns.Sets() {
		if leaving = true; !set.leavable() {
			held[set.shard] = true
			kept = kept && set.tenure.mayEnd()
		}
	}
	said := (*ns.heldBy.Load())[ns.node.ID]
	leaving = leaving || slices.ContainsFunc(said.shards, func(b byte) bool { return b != 0 })
	switch {
	case len(held) == 0 && leaving && ns.Outside() == nil:
		return fmt.Errorf("%w: the hosts have them all, and it is about to say that it holds none: try again in some seconds", ErrNotHandedOver)
	case len(held) == 0:
		return nil
	}
	if ns.Outside() != nil {
		return fmt.Errorf("%w: %d of %d; it is no member any more, and no host can take them over from it: --force deletes them", ErrNotHandedOver, len(held), ns.rule.Shards)
	}
	if kept {
		return fmt.Errorf("%w: of %d of %d the hosts have the records, and what syncd conflicts %[4]s and syncd rejected %[4]s list is here alone: restore or forget each entry, and try again",
			ErrNotHandedOver, len(held), ns.rule.Shards, ns.Members().Name())
	}
	if !ns.Members().Has(ns.node.ID, RoleWrite) {
		return fmt.Errorf("%w: %d of %d; others take them over: try again once syncd status counts fewer", ErrNotHandedOver, len(held), ns.rule.Shards)
	}
	return fmt.Errorf("%w: %d of %d; others take them over once this node only reads, here or at an admin above it: syncd member set %s %s --role read",
		ErrNotHandedOver, len(held), ns.rule.Shards, ns.Members().Name(), ns.node.ID)
}

// TakeShard makes this node, a host of a shard by the list as it is now, one that holds it,
// durably, and opens the shard's set, which is empty and recovers until it was found equal with
// another one. reconcile.ErrBusy: it is no host any more, or is dropping the shard still.
func (ns *Namespace) TakeShard(ctx context.Context, shard placement.Shard) (set *Set, err error) {
	ns.coming.Lock()
	defer ns.coming.Unlock()
	if set, err = ns.takeShard(ctx, shard); err != nil {
		return nil, fmt.Errorf("take shard %d of namespace %s: %w", shard, ns.Members().Name(), err)
	}
	return set, nil
}

// takeShard is TakeShard; coming is held.
func (ns *Namespace) takeShard(ctx context.Context, shard placement.Shard) (_ *Set, err error) {
	switch at, kept := ns.Members().state.find(shard); {
	case ns.rule == nil:
		return nil, ErrOneShard
	case int(shard) >= ns.rule.Shards:
		return nil, fmt.Errorf("%w: the last one is %d", ErrInvalid, ns.rule.Shards-1)
	case ns.coming.closed:
		return nil, dbadapter.ErrClosed
	case slices.ContainsFunc(ns.Sets(), func(set *Set) bool { return set.shard == shard }):
		return nil, fmt.Errorf("%w: it is held already", ErrInvalid)
	case kept && ns.Members().state.Shards[at].Dropped:
		return nil, fmt.Errorf("%w: it is being dropped", reconcile.ErrBusy)
	}
	if err := ns.update(func(s *State) error {
		if layout := ns.placed.Load().layout; layout == nil || !layout.Has(shard, ns.node.ID) {
			return fmt.Errorf("%w: the list of members has changed, and this node is no host of it", reconcile.ErrBusy)
		}
		s.addShard(shard)
		return nil
	}); err != nil {
		return nil, err
	}
	set := &Set{shard: shard}
	if err := set.open(ctx, ns, reconcile.DeriveShardKeys(ns.secret, ns.Members().state.Root(), uint32(shard))); err != nil {
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

// begin makes an open set one of the namespace's.
func (ns *Namespace) begin(ctx context.Context, set *Set) error {
	ns.updating.Lock()
	defer ns.updating.Unlock()
	err := ns.updateLocked(func(s *State) error {
		set.in(s).Log = logs(&set.Part)
		return nil
	})
	if err != nil {
		return err
	}
	if err := set.startVouching(ctx, ns.Members().state); err != nil {
		return err
	}
	if err := set.vouch((*watermark).followPromises); err != nil {
		return err
	}
	set.rehost()
	if err := set.vouch(set.relist); err != nil {
		return err
	}
	ns.put(append(slices.Clone(ns.Sets()), set))
	return nil
}

// Leave ends that this node holds the set's shard, durably: no record enters it any more,
// and no sync of it begins. Discard is to follow. reconcile.ErrBusy: it may not be left; a
// record has come, the list of members has changed, or something stands in its kept log.
func (ns *Namespace) Leave(set *Set) error {
	ns.coming.Lock()
	defer ns.coming.Unlock()
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
	ns.updating.Lock()
	defer ns.updating.Unlock()
	if n := set.Kept(); n > 0 {
		return fmt.Errorf("%w: %d conflicts, or records that were set aside, are listed in it alone: restore or forget each", reconcile.ErrBusy, n)
	}
	if !set.tenure.end() {
		return fmt.Errorf("%w: its hosts may lack something of it", reconcile.ErrBusy)
	}
	v := &set.vouching.mark
	least := max(v.Pledged, v.Floor, dbadapter.Timestamp(ns.clock.Latest()))
	if err := ns.updateLocked(func(s *State) error {
		set.in(s).Dropped = true
		// A set of this shard that begins later makes no version up to what this one has promised
		// or written. The store's ceiling, which is ahead of that, would keep out what members
		// write meanwhile.
		s.Vouched.Pledged = max(s.Vouched.Pledged, least)
		return nil
	}); err != nil {
		return err
	}
	ns.put(slices.DeleteFunc(slices.Clone(ns.Sets()), func(other *Set) bool { return other == set }))
	ns.coming.left = append(ns.coming.left, set)
	ns.node.mu.Lock()
	defer ns.node.mu.Unlock()
	if ns.node.parts[set.Keys.ID] == &set.Part {
		delete(ns.node.parts, set.Keys.ID)
	}
	return nil
}

// Discard closes a set that was left and deletes its records. What still reads them gets
// an error.
func (ns *Namespace) Discard(ctx context.Context, set *Set) error {
	ns.coming.Lock()
	defer ns.coming.Unlock()
	if ns.coming.closed {
		return nil // the next opening does it
	}
	at := slices.Index(ns.coming.left, set)
	if at < 0 {
		return fmt.Errorf("%w: shard %d of namespace %s was not left", ErrInvalid, set.shard, ns.Members().Name())
	}
	err := set.Store.Close()
	if err == nil {
		err = ns.discard(ctx, set.shard, set.Keys.ID)
	}
	if err == nil {
		ns.coming.left = slices.Delete(ns.coming.left, at, at+1)
	}
	if err != nil {
		return fmt.Errorf("drop shard %d of namespace %s: %w", set.shard, ns.Members().Name(), err)
	}
	return nil
}

func (ns *Namespace) discard(ctx context.Context, shard placement.Shard, id dbadapter.NamespaceID) error {
	if err := ns.coming.drop(ctx, id); err != nil {
		return err
	}
	return ns.update(func(s *State) error { s.forget(shard); return nil })
}

// discardLeft ends, before the namespace is open, what a crash has left of shards that were
// dropped.
func (ns *Namespace) discardLeft(ctx context.Context, s *State) error {
	var left []placement.Shard
	for i := range s.Shards {
		if s.Shards[i].Dropped {
			left = append(left, s.Shards[i].Shard)
		}
	}
	if len(left) == 0 {
		return nil
	}
	for _, shard := range left {
		if err := ns.coming.drop(ctx, reconcile.DeriveShardKeys(ns.secret, s.Root(), uint32(shard)).ID); err != nil {
			return err
		}
		s.forget(shard)
	}
	return ns.save(s)
}
