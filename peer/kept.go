package peer

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/peer/status"
)

// Conflicts yields the records that lost against a record whose writer had not seen them here, of
// each shard the oldest first. There are at most 10,000 and 64 MiB of them a shard. What other
// members keep KeptAt tells. RestoreKept writes one again.
func (ns *Namespace) Conflicts(ctx context.Context) iter.Seq2[dbadapter.Kept, error] {
	return ns.kept(ctx, "list the conflicts of", dbadapter.KeptConflict)
}

// SetAside yields the records that this node took out of the set without their being deleted, of
// each shard the oldest first. They stay here until RestoreKept or ForgetKept.
func (ns *Namespace) SetAside(ctx context.Context) iter.Seq2[dbadapter.Kept, error] {
	return ns.kept(ctx, "list what is set aside of", dbadapter.KeptSetAside)
}

func (ns *Namespace) kept(ctx context.Context, what string, why dbadapter.Why) iter.Seq2[dbadapter.Kept, error] {
	return listed(ctx, ns, what, func(ctx context.Context) iter.Seq2[dbadapter.Kept, error] { return ns.core.Kept(ctx, why, 0) })
}

// Keepers are the other members that say that they keep entries of Conflicts or SetAside, by id.
// They say so some seconds after the first one. In a namespace that is not cut into shards no
// member says so.
func (ns *Namespace) Keepers() (ids []ID) {
	for _, id := range ns.core.Keepers() {
		ids = append(ids, ID(id))
	}
	return ids
}

// KeptAt asks another member for the entries of a kind that it keeps, behind the one of that number.
// It returns a page, the least numbers first. With more, further ones follow behind the last one.
// Only a call at that member itself gives the values, and restores or forgets entries.
func (ns *Namespace) KeptAt(ctx context.Context, id ID, kind dbadapter.Why, after uint64) (page []status.KeptAt, more bool, err error) {
	err = ns.within(ctx, fmt.Sprintf("list what member %s keeps of", id), func(ctx context.Context) (err error) {
		switch {
		case ns.core.Rule() == nil:
			return node.ErrOneShard
		case !ns.core.Admits(node.ID(id)):
			return fmt.Errorf("%w: it is no member", ErrNotFound)
		}
		ctx, cancel := context.WithTimeoutCause(ctx, shards.Patience, fmt.Errorf("%w: no answer in %s", ErrUnreachable, shards.Patience))
		defer cancel()
		page, more, err = ns.hosts.KeptAt(ctx, node.ID(id), kind, after)
		return err
	})
	return page, more, err
}

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
		if err = ns.core.Absent(&k.Record); err == nil {
			d.Record.Value, err = ns.KeptValue(ctx, &k)
		}
		if err == nil || k.Record.Deleted {
			version, err = ns.writeShard(ctx, "restore", d)
		}
	}
	if err != nil && !node.IsSo(&k, err) {
		return version, err
	}
	return version, ns.ForgetKept(ctx, k.Seq)
}

// KeptSize is the size of the value of an entry of Conflicts or SetAside in bytes. By placement writer the
// entry itself has no value, but what its value is.
func (ns *Namespace) KeptSize(k *dbadapter.Kept) int { return ns.core.Size(&k.Record) }

// KeptValue is the value of an entry of Conflicts or SetAside. By placement writer hosts may be asked for it;
// the errors are then those of Get.
func (ns *Namespace) KeptValue(ctx context.Context, k *dbadapter.Kept) ([]byte, error) {
	if ns.core.Rule() == nil || k.Record.Deleted {
		return k.Record.Value, nil
	}
	ctx, cancel := ns.bind(ctx)
	defer cancel()
	return ns.hosts.Value(ctx, &k.Record)
}

// ForgetKept takes entries out of Conflicts or SetAside, by their numbers.
func (ns *Namespace) ForgetKept(ctx context.Context, seqs ...uint64) error {
	return ns.within(ctx, "forget kept records of", func(ctx context.Context) error {
		err := ns.core.ForgetKept(ctx, seqs...)
		if err == nil {
			ns.moveSoon() // with its last entry a shard that was left goes
		}
		return err
	})
}

// Rejected lists what was refused of what peers offered, the oldest first.
func (ns *Namespace) Rejected() []status.Rejection {
	out := []status.Rejection{}
	for _, sh := range ns.shards() {
		for _, r := range sh.set.Rejected() {
			key, users := ns.core.UsersKey(r.Key)
			if !users {
				continue
			}
			out = append(out, status.Rejection{Key: key, Version: r.Version, Peer: ID(r.From), Reason: r.Reason, Time: r.Time})
		}
	}
	if len(ns.shards()) > 1 { // the times of one set go back where the clock does
		slices.SortStableFunc(out, func(a, b status.Rejection) int { return a.Time.Compare(b.Time) })
	}
	return out
}
