package peer

import (
	"context"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/placement"
)

// search asks the directory for the entry of one key. Where that is of this import, or a host has refused
// that, the record goes to where the other ones lead, as that of a put does (node.ByWriter.Others).
func (im *shardImport) search(ctx context.Context, i *imported) {
	ns := im.ns
	found, err := ns.lookUpIn(ctx, ns.core.Entries(i.Key), i.Key, false)
	var shard placement.Shard
	var others []*dbadapter.Record
	if err == nil && (len(i.named) > 0 || found.Record != nil && slices.Contains(i.versions, found.Record.Version)) {
		shard, others, err = ns.follows.byWriter.Others(ctx, i.Key, i.versions, i.named)
	}
	i.held = nil // a host that has the entry which was expected has not taken this import's
	if err == nil && found.Record != nil {
		i.seen = append(i.seen, found.Record)
	}
	switch {
	case err != nil:
		i.failed(ns.node.self.id, err, false)
	case len(others) > 0:
		i.seen = append(i.seen, others...)
		i.goTo(shard)
	case i.deletes() && !i.bound && (found.Record == nil || found.Record.Deleted):
		im.deleteFound(ctx, i)
	case found.Record == nil:
		im.absent(i, found.Sure)
	case found.Record.Deleted:
		im.absent(i, true)
	default:
		if shard, i.err = directory.ShardOf(found.Record, ns.core.Rule().Shards); i.err == nil { // it was examined when it came
			i.goTo(shard)
		}
	}
}

// deletes reports whether the item deletes what is there, if anything is.
func (i *imported) deletes() bool { return i.Deleted && i.Time.IsZero() }

// deleteFound goes on with a deletion that no entry leads to a shard, as a single one does.
func (im *shardImport) deleteFound(ctx context.Context, i *imported) {
	found, err := im.ns.lookUp(ctx, i.Key, false)
	switch {
	case err != nil:
		i.failed(im.ns.node.self.id, err, false)
	case found.Record != nil && !found.Record.Deleted:
		i.seen = append(i.seen, found.Record)
		i.shard, i.stage = found.Shard, making
	case found.Sure:
		i.done = true // there is nothing to delete
	default:
		i.err = found.Unsure()
	}
}

// goTo goes on with an item whose record belongs in the shard of an entry.
func (i *imported) goTo(shard placement.Shard) {
	if i.shard, i.stage, i.searched = shard, entryDue, true; i.bound {
		i.stage = making
	}
}
