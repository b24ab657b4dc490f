package peer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
)

// Conflicts yields the records that lost against a record whose writer had not seen
// them, of each shard the oldest first: at most 10,000 and 64 MiB of them a shard, on this node alone.
// RestoreKept writes one again.
func (ns *Namespace) Conflicts(ctx context.Context) iter.Seq2[dbadapter.Kept, error] {
	return ns.kept(ctx, "list the conflicts of", dbadapter.KeptConflict)
}

// SetAside yields the records that this node took out of the set without their
// being deleted, of each shard the oldest first: they stay here until RestoreKept or ForgetKept.
func (ns *Namespace) SetAside(ctx context.Context) iter.Seq2[dbadapter.Kept, error] {
	return ns.kept(ctx, "list what is set aside of", dbadapter.KeptSetAside)
}

func (ns *Namespace) kept(ctx context.Context, what string, why dbadapter.Why) iter.Seq2[dbadapter.Kept, error] {
	return func(yield func(dbadapter.Kept, error) bool) {
		if err := ns.enter(what); err != nil {
			yield(dbadapter.Kept{}, err)
			return
		}
		defer ns.gate.leave()
		ctx, cancel := ns.bind(ctx)
		defer cancel()
		for _, sh := range ns.shards() {
			for k, err := range sh.set.Store.Kept(ctx) {
				if ctx.Err() != nil {
					err = context.Cause(ctx)
				}
				if err != nil {
					yield(dbadapter.Kept{}, fmt.Errorf("%s %s: %w", what, ns.Name(), err))
					return
				}
				k.Seq |= uint64(sh.set.Shard()) << keptBits
				if k.Why == why && !yield(k, nil) {
					return
				}
			}
		}
	}
}

// keptBits are the low bits of an entry's number, in which it has the number that its shard
// gave it; the shard's number stands above. All together is an exact number of JSON.
const keptBits = 40

// RestoreKept writes again what an entry of Conflicts or SetAside holds, as this
// node's newest write of the key, and forgets the entry. It returns the version
// that the key then has. Where the entry is a deletion and the key holds no record,
// it writes nothing, and the version is zero. In a namespace that is cut into shards the
// hosts take the write.
func (ns *Namespace) RestoreKept(ctx context.Context, k dbadapter.Kept) (dbadapter.Version, error) {
	d := node.Restored(&k)
	var version dbadapter.Version
	var err error
	switch {
	case ns.core.Rule() == nil:
		version, err = ns.commitOne(ctx, "restore", &d, func(set *node.Set) (*node.Attempt, error) { return set.Restore(&k) })
	default:
		if err = ns.core.Absent(&k.Record); err == nil || k.Record.Deleted {
			version, err = ns.writeShard(ctx, "restore", d)
		}
	}
	if err != nil && !node.IsSo(&k, err) {
		return version, err
	}
	return version, ns.ForgetKept(ctx, k.Seq)
}

// ForgetKept takes entries out of Conflicts or SetAside, by their numbers.
func (ns *Namespace) ForgetKept(ctx context.Context, seqs ...uint64) error {
	if err := ns.enter("forget kept records"); err != nil {
		return err
	}
	defer ns.gate.leave()
	for _, sh := range ns.shards() {
		var own []uint64
		for _, seq := range seqs {
			if seq>>keptBits == uint64(sh.set.Shard()) {
				own = append(own, seq&(1<<keptBits-1))
			}
		}
		if len(own) == 0 {
			continue
		}
		if err := sh.set.Store.Forget(ctx, own...); errors.Is(err, ErrClosed) && !slices.Contains(ns.shards(), sh) {
			continue // it was left meanwhile, as one in which nothing is kept any more
		} else if err != nil {
			return fmt.Errorf("forget kept records of %s: %w", ns.Name(), err)
		}
	}
	return nil
}
