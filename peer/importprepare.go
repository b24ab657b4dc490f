package peer

import (
	"context"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
)

// prepare sees to items that need no record, and to those of which this node writes one.
func (im *shardImport) prepare(ctx context.Context, i *imported) error {
	switch {
	case i.record != nil:
	case i.Expired(im.ns.core):
		i.done, i.expired = true, true
	case i.here != nil: // another host holds what this one has not seen
		attempt, err := i.here.set.Write(node.Draft{Record: dbadapter.Record{Key: i.Key, Value: i.Value, Deleted: i.Deleted, Expires: i.ExpiryStamp()}, Seen: i.after(im.own(i))})
		if err == nil {
			err = i.here.commit(ctx, attempt)
		}
		switch {
		case err != nil && leftMeanwhile(ctx, err): // it is made for the hosts
			i.here, i.sent = nil, true
			return nil
		case err != nil:
			return err
		}
		i.record, i.held, i.fresh = attempt.Record(0), []ID{im.ns.node.self.id}, true
	case i.deletes() && len(i.seen) == 0:
		if im.own(i) != nil { // a host that is current may not have heard of it yet
			return nil
		}
		found, err := im.ns.lookUpRested(ctx, im.ns.node.deadline(ctx), i.Key)
		switch {
		case err != nil:
			return err
		case found.Record != nil:
			i.seen = append(i.seen, found.Record)
		case found.Sure:
			i.done = true // there is nothing to delete
		default:
			return ErrUnsure
		}
	}
	return nil
}

// deletes reports whether the item is a deletion without a date, which needs a record to delete.
func (i *imported) deletes() bool { return i.Deleted && i.Time.IsZero() }
