package peer

import (
	"context"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
)

// By placement writer a key that was deleted may be written again in another shard, and one that
// two nodes wrote first is in two shards until that is decided. A watch follows each shard by
// itself, so that what one tells of a key may come behind what a later one has told. So where the
// locator does not place a key in the shard that tells of it, or the shard tells that it is gone,
// the directory is asked when the watch comes to the event: what is told then is at least as late
// as all that was told before, and what the last of a key's shards tells is what it holds.

// placedHere is the event that a watch makes of what a shard tells; nil: none, since the key is in
// another shard, which tells of it.
func (ns *Namespace) placedHere(ctx context.Context, shard placement.Shard, e *node.Watched) (*node.Watched, error) {
	if !ns.core.Writers() || e.Kind == node.AtKind {
		return e, nil
	}
	there := e.Kind == node.PutKind
	if a := ns.whereIs(e.Key); there && (a.Where == directory.In || a.Where == directory.Here) && a.Shard == shard {
		return e, nil
	}
	entry, err := ns.watchedIn(ctx, ns.core.Entries(e.Key), e.Key)
	if err != nil {
		return nil, err
	}
	switch {
	case entry.Record == nil && there && entry.Sure:
		return nil, nil //nolint:nilnil // it reads as absent; written anew, it is told
	case entry.Record == nil:
		return e, nil
	case entry.Record.Deleted && there && entry.Record.Version.Compare(e.Record.Version) > 0:
		return nil, nil //nolint:nilnil // the tombstone follows
	case entry.Record.Deleted:
		return e, nil
	}
	in, err := directory.ShardOf(entry.Record, ns.core.Rule().Shards)
	if err != nil || in == shard {
		return e, err
	}
	if there {
		return nil, nil //nolint:nilnil // that shard tells of it
	}
	now, err := ns.watchedIn(ctx, in, e.Key)
	if err != nil || now.Record == nil || now.Record.Deleted { // its record follows
		return e, err
	}
	told := *e
	told.Kind, told.Record, told.Coalesced = node.PutKind, now.Record, true
	return &told, nil
}

// watchedIn asks all hosts of a set for a key, until one has answered.
func (ns *Namespace) watchedIn(ctx context.Context, in placement.Shard, key []byte) (lookedUp, error) {
	for began := time.Now(); ; {
		found, err := ns.lookUpIn(ctx, in, key, true)
		switch {
		case err == nil:
			return found, nil
		case time.Since(began) > watchPatience:
			return found, fmt.Errorf("%w: of %q, whose shard the directory is to say; go on from the last cursor when its hosts are there again: %w", ErrUnsure, clip(key), err)
		case !sleep(ctx, watchIdleMost):
			return found, context.Cause(ctx)
		}
	}
}
