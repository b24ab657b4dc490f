package node

import (
	"context"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/placement"
)

// writtenIn is the shard in which a write of a key belongs, and the entries of the key that the
// directory has. own are the versions of earlier tries of this write, and named the entries for which
// hosts have refused those. Before one, what is nowhere needs no question, unless the write asks, or this node
// remembers a write of its own: a host of the directory tells if it holds an entry all the same that the write has not seen.
func (w *ByWriter) writtenIn(ctx context.Context, key []byte, asks bool, own []dbadapter.Version, named []*dbadapter.Record) (placement.Shard, []*dbadapter.Record, error) {
	ns := w.ns
	if !asks && len(own) == 0 && w.WhereIs(key).Where == directory.Nowhere {
		return ns.OwnShard(key), nil, nil
	}
	entry, err := w.do.LookUpIn(ctx, ns.Entries(key), key, false)
	if err != nil {
		return 0, nil, err
	}
	var held []*dbadapter.Record
	if entry.Record != nil {
		held = append(held, entry.Record)
	}
	// A host that refused may be away by now, and the one that was asked may not have heard of its entry.
	if len(named) > 0 || len(own) > 0 && (!there(entry.Record) || slices.Contains(own, entry.Record.Version)) {
		shard, others, err := w.Others(ctx, key, own, named)
		if err != nil || len(others) > 0 {
			return shard, append(others, held...), err
		}
	}
	if !there(entry.Record) {
		return ns.OwnShard(key), held, nil
	}
	shard, err := directory.ShardOf(entry.Record, ns.rule.Shards)
	return shard, held, err
}

// Others are the entries that hosts hold of a key, or have held when they refused that of an earlier
// try, but for those of this write itself, if one of them leads to a record, or may, and the shard of
// that. The write has seen that record and is to take its place, which it can in its shard alone. From
// elsewhere, where the own entries are for, it would hide it: the record could come back, once the entry
// was deleted and collected, over a deletion that has seen it.
func (w *ByWriter) Others(ctx context.Context, key []byte, own []dbadapter.Version, named []*dbadapter.Record) (shard placement.Shard, others []*dbadapter.Record, err error) {
	entry, err := w.do.LookUpIn(ctx, w.ns.Entries(key), key, true)
	if err != nil {
		return 0, nil, err
	}
	said, err := w.said(key, &entry)
	if err != nil {
		return 0, nil, err
	}
	var held []*dbadapter.Record
	note := func(r *dbadapter.Record) {
		if there(r) && !slices.Contains(own, r.Version) {
			held = append(held, r)
		}
	}
	for _, a := range said {
		if a != nil {
			note(a.Record)
		}
	}
	for _, r := range named { // the own one may have taken its place there since
		if _, err := directory.ShardOf(r, w.ns.rule.Shards); err == nil { // not one that was deleted
			note(r)
		}
	}
	slices.SortFunc(held, func(a, b *dbadapter.Record) int { return b.Version.Compare(a.Version) })
	for _, r := range held {
		if shard, err = directory.ShardOf(r, w.ns.rule.Shards); err != nil {
			return 0, nil, err
		}
		found, err := w.do.LookUpIn(ctx, shard, key, true) // all: a current host that has not heard of the record yet would say, for sure, that the key holds nothing
		if err != nil {
			return 0, nil, err
		}
		if there(found.Record) || !found.Sure {
			return shard, held, nil
		}
	}
	return 0, nil, nil
}
