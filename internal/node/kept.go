package node

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
)

// Kept is how many entries the set's kept log has: conflicts, and what was set aside. They
// are on this node alone, and stay with it.
func (set *Set) Kept() int {
	return set.Store.KeptCount(dbadapter.KeptConflict) + set.Store.KeptCount(dbadapter.KeptSetAside)
}

// keptBits are the low bits of an entry's number, which hold the number that its
// set gave it. The shard's number stands above. All together is an exact number of
// JSON.
const keptBits = 40

// MaxKept is the greatest number of an entry.
const MaxKept = placement.MaxShards<<keptBits - 1

// Kept yields the entries of all kept logs of a kind whose numbers are greater, by number: of each
// shard the oldest first.
func (ns *Namespace) Kept(ctx context.Context, why dbadapter.Why, after uint64) iter.Seq2[dbadapter.Kept, error] {
	return func(yield func(dbadapter.Kept, error) bool) {
		for _, set := range ns.Logs() {
			if uint64(set.shard) < after>>keptBits || set.Store.KeptCount(why) == 0 {
				continue
			}
			for set != nil {
				closed := false
				for k, err := range set.Store.Kept(ctx) {
					if closed = errors.Is(err, dbadapter.ErrClosed); closed {
						break
					}
					if k.Seq |= uint64(set.shard) << keptBits; err == nil && (k.Why != why || k.Seq <= after) {
						continue
					}
					ns.asUsers(&k.Record)
					if !yield(k, err) || err != nil {
						return
					}
					after = k.Seq
				}
				if !closed {
					break
				}
				var err error
				if set, err = ns.reopened(set); err != nil {
					yield(dbadapter.Kept{}, err)
					return
				}
			}
		}
	}
}

// Keepers are the other members that say that they keep entries.
func (ns *Namespace) Keepers() (ids []ID) {
	if ns.rule == nil {
		return nil
	}
	for id, h := range *ns.heldBy.Load() {
		if id != ns.node.ID && ns.Admits(id) && slices.ContainsFunc(h.Kept, func(b byte) bool { return b != 0 }) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// keeps is a bit for each shard of which this node keeps entries.
func (ns *Namespace) keeps() (shards []byte) {
	for _, set := range ns.Logs() {
		if set.Kept() > 0 {
			if shards == nil {
				shards = make([]byte, (ns.rule.Shards+7)/8)
			}
			shards[set.shard/8] |= 1 << (set.shard % 8)
		}
	}
	return shards
}

// reopened is the set with the kept log of one that was closed, which was left or
// taken again. It is nil if that has none any more.
func (ns *Namespace) reopened(was *Set) (*Set, error) {
	ns.lifecycle.Lock()
	defer ns.lifecycle.Unlock()
	if ns.lifecycle.closed {
		return nil, dbadapter.ErrClosed
	}
	for _, set := range ns.Logs() {
		if set.shard == was.shard && set != was {
			return set, nil
		}
	}
	return nil, nil //nolint:nilnil // that is the answer
}

// ForgetKept takes entries out of the kept logs, by their numbers.
func (ns *Namespace) ForgetKept(ctx context.Context, seqs ...uint64) error {
	ns.lifecycle.Lock() // no set is closed meanwhile
	defer ns.lifecycle.Unlock()
	for _, set := range ns.Logs() {
		var own []uint64
		for _, seq := range seqs {
			if seq>>keptBits == uint64(set.shard) {
				own = append(own, seq&(1<<keptBits-1))
			}
		}
		if len(own) == 0 {
			continue
		}
		if err := set.Store.Forget(ctx, own...); err != nil {
			return err
		}
	}
	return nil
}

// Restore prepares to write again what stands in the kept log, with a version of
// now: a put, or a deletion. The driver forgets the entry once that is durable.
// ErrExpired: its time has passed. ErrDeleted, ErrNotFound: it is a deletion, and
// the key holds no record.
func (set *Set) Restore(k *dbadapter.Kept) (*Attempt, error) {
	r := &k.Record
	if r.Deleted {
		return set.Delete(r.Key)
	}
	if err := set.ns.Absent(r); err != nil {
		return nil, fmt.Errorf("what was kept: %w", err)
	}
	return set.Write(Restored(k))
}

// Restored is what Restore writes.
func Restored(k *dbadapter.Kept) Draft {
	r := &k.Record
	return Draft{Record: dbadapter.Record{Key: r.Key, Value: r.Value, Expires: r.Expires, Deleted: r.Deleted}}
}

// IsSo reports whether an error of a Restore says that the key holds already what
// it would write.
func IsSo(k *dbadapter.Kept, err error) bool {
	return k.Record.Deleted && (errors.Is(err, dbadapter.ErrNotFound) || errors.Is(err, dbadapter.ErrDeleted) || errors.Is(err, dbadapter.ErrExpired))
}
