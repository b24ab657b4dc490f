package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
)

// renounce sets aside, before anything else is synced, what this node may hold
// alone. It is for what was written before this node learned that it had lost the
// right to write.
func (set *Set) renounce(ctx context.Context) error {
	if !set.gc.Renounces() {
		return nil
	}
	_, err := set.gc.Sweep(ctx)
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
	err := ns.NotLast(id)
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
	proved := set.gc.State().Proved
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
