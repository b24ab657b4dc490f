package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
)

// One rule binds the writes of a node that loses the right to write, by whatever it
// hears that. At once it sets aside its own records that no sync has proved another
// member to hold. It also sets aside those that its list does not let it have
// written. It does so even where the same news give it the right back. What others
// have written since is not to lose against what a person may not know to be there
// any more.
//
// What is proved is known by one reading of the clock, Vouched.Proved. So the rule
// is a function of that, of Vouched.Heard and of the list. A sweep that was cut off
// goes on after a restart.

// follow takes this node's right to write as it is by now, at a reading of the clock. It
// reports whether what is durable has changed.
func (w *watermark) follow(right, reading dbadapter.Timestamp) (changed bool) {
	if w.Right == right {
		return false
	}
	if w.Right != 0 && (right == 0 || right > w.Right) {
		w.Heard = reading
	}
	w.Right = right
	return true
}

// prove notes that another member holds what this node has written up to a reading.
// It does not if this node has dated records since a sync began with that reading.
func (w *watermark) prove(tau dbadapter.Timestamp, backdated uint64) (changed bool) {
	if w.backdated != backdated || tau <= w.Proved {
		return false
	}
	w.Proved = tau
	return true
}

// unprove notes that a record with this clock, which may be earlier than Proved, is about to be
// written. What this node wrote later than it counts as not proved, too, until the next sync.
func (w *watermark) unprove(clock dbadapter.Timestamp) (changed bool) {
	w.backdated++
	if clock > w.Proved {
		return false
	}
	w.Proved = clock - 1
	return true
}

// renounces reports whether the record is this node's own and may be held here
// alone. It was written before this node heard that it had lost the right to write.
func (s *sweep) renounces(r *dbadapter.Record) bool {
	return s.proved < r.Version.Clock && r.Version.Clock <= s.heard && s.set.ns.own(r)
}

// renounced notes that there are no such records any more.
func (s *sweep) renounced() error {
	if s.heard == 0 {
		return nil
	}
	return s.set.vouch(func(w *watermark) bool {
		if w.Heard != s.heard { // it has heard so once more
			return false
		}
		w.Heard = 0
		return true
	})
}

// renounce sets aside, before anything else is synced, what this node may hold
// alone. It is for what was written before this node heard that it had lost the
// right to write.
func (set *Set) renounce(ctx context.Context) error {
	if !set.vouching.renounces.Load() {
		return nil
	}
	_, err := set.sweep(ctx)
	return err
}

// renounce does so in all sets.
func (ns *Namespace) renounce(ctx context.Context) (failed error) {
	for _, set := range ns.Sets() {
		failed = errors.Join(failed, set.renounce(ctx))
	}
	return failed
}

// ErrHeldHere: this node holds writes that no sync has proved another member to hold.
var ErrHeldHere = errors.New("this node may alone hold what was written here")

// MayDrop says why this node should not drop the namespace. It is the last admin of
// other members (ErrDenied), or may alone hold what was written here (ErrHeldHere).
func (ns *Namespace) MayDrop(ctx context.Context) error {
	if ns.rule == nil { // else HandedOver says so
		if err := ns.renounce(ctx); err != nil {
			return fmt.Errorf("%w: what is to be set aside of it (syncd rejected) cannot be yet; or delete it (--force): %w", ErrHeldHere, err)
		}
	}
	name, n := ns.Members().Name(), 0
	for _, set := range ns.Logs() {
		n += set.Store.KeptCount(dbadapter.KeptSetAside)
	}
	if n > 0 {
		return fmt.Errorf("%w: %d records were set aside here: restore or forget each that syncd rejected %s lists, or delete them (--force)", ErrHeldHere, n, name)
	}
	switch others := len(ns.Members().Members()) - 1; {
	case ns.rule != nil, ns.Outside() != nil:
	case others > 0:
		if err := ns.mayGiveUp(ctx, ns.node.ID); err != nil {
			return err
		}
	default:
		if _, n, _ := ns.Sets()[0].Live.State(); n > 0 {
			return fmt.Errorf("%w: %d records, and there is no other member: invite one (syncd invite %s), or delete them (--force)", ErrHeldHere, n, name)
		}
	}
	return nil
}

// mayGiveUp says why a node, if it is this one, should not give up its role.
func (ns *Namespace) mayGiveUp(ctx context.Context, id ID) error {
	if id != ns.node.ID || ns.rule != nil {
		return nil
	}
	err := ns.notLast(ns.Members(), id)
	if err != nil || !ns.Members().Has(id, RoleWrite) {
		return err
	}
	n, err := ns.Sets()[0].unproved(ctx)
	if err != nil || n == 0 {
		return err
	}
	return fmt.Errorf("%w: %d of its writes no sync has proved to be held by another member: sync first (syncd sync --ns %s), or go on without them (--force)", ErrHeldHere, n, ns.Members().Name())
}

// unproved counts this node's own records that no sync has proved another member to hold.
func (set *Set) unproved(ctx context.Context) (n int, err error) {
	set.vouching.Lock()
	proved := set.vouching.mark.Proved
	set.vouching.Unlock()
	if set.Store.Latest() <= proved {
		return 0, nil
	}
	snap, err := set.Store.Snapshot()
	if err != nil {
		return 0, err
	}
	defer snap.Close()
	for r, err := range snap.Scan(ctx, nil, nil) {
		if err != nil {
			return n, err
		}
		if r.Version.Clock > proved && set.ns.own(&r.Record) {
			n++
		}
	}
	return n, nil
}
