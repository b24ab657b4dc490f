package peer

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/route"
)

// writeEachAlone writes the items that are to be written by themselves, some at once. Where a host that is needed is away, one finds
// that out and those behind it fail as that did: they would wait as long for the same hosts, one after the other.
func (im *shardImport) writeEachAlone(ctx context.Context, items []*imported) {
	places := make(chan struct{}, importShardsAtOnce)
	var running sync.WaitGroup
	defer running.Wait()
	var failed atomic.Pointer[error]
	for _, i := range items {
		if i.over() || !i.alone {
			continue
		}
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			if err := failed.Load(); err != nil {
				i.err = *err
				return
			}
			if im.writeAlone(ctx, i); i.err != nil {
				failed.Store(&i.err)
			}
		})
	}
}

// The pauses between two attempts to write an item by itself.
const (
	aloneFirst = 100 * time.Millisecond
	aloneMost  = 5 * time.Second
)

// writeAlone writes an item with a date that hosts take no more, as of now: on the condition that its key holds nothing that is dated later, as far as all hosts know (node.Draft.Late). What an
// earlier step has left of the item at some hosts gives way to it.
func (im *shardImport) writeAlone(ctx context.Context, i *imported) {
	ns := im.ns
	i.stale, i.fresh = false, false
	if i.Expired(ns.core) {
		i.done, i.expired = true, true
		return
	}
	d := node.Draft{Record: dbadapter.Record{Key: i.Key, Value: i.Value, Deleted: i.Deleted, Expires: i.ExpiryStamp()}, Late: i.Time, Ack: int(im.ack)}
	began := time.Now()
	for pause := aloneFirst; ; pause *= 2 {
		_, err := ns.offerInTurn(ctx, d, false)
		switch {
		case err == nil:
			i.done, i.fresh, i.late = true, true, true
		case errors.Is(err, node.ErrLater):
			i.done, i.stale = true, true
		case errors.Is(err, node.ErrThere): // perhaps by an attempt of which no host has told
			i.fresh, i.late = i.sent, i.sent
			if i.err = im.bring(ctx, i); i.err == nil {
				i.done = true
			}
		case errors.Is(err, ErrLimit):
			i.done, i.full = true, true
		case ctx.Err() == nil && time.Since(began) < patienceWith(err) && sleep(ctx, min(pause, aloneMost)):
			i.sent = i.sent || errors.Is(err, ErrUnconfirmed)
			continue
		default:
			i.sent = i.sent || errors.Is(err, ErrUnconfirmed)
			i.err = err
		}
		return
	}
}

// patienceWith is for how long an item is tried again for what an attempt has failed for.
func patienceWith(err error) time.Duration {
	for _, passes := range []error{ErrUnsure, ErrUnconfirmed, ErrBusy, ErrConflict, ErrUnreachable} {
		if errors.Is(err, passes) {
			return importPatience
		}
	}
	return 0
}

// bring has as many hosts as the import asks for hold what the item says, which some do.
func (im *shardImport) bring(ctx context.Context, i *imported) error {
	if im.ack == 0 || im.ack == 1 {
		return nil
	}
	found, err := im.ns.lookUp(ctx, i.Key, true)
	switch {
	case err != nil:
		return err
	case !found.Sure:
		return found.Unsure()
	case found.Record == nil: // a deletion has come meanwhile, and was collected
		return nil
	}
	remote := im.ns.core.Remote(i.Key)
	need, err := remote.Enough(im.ack)
	if err != nil {
		return err
	}
	hosts, err := remote.Hosts()
	if err != nil {
		return err
	}
	n := im.ns.node
	put, err := route.NewPut(hosts, "", false, route.Ack(need), n.deadline(ctx), n.elapsed())
	if err != nil {
		return err
	}
	written, err := im.ns.hand(ctx, remote, found.Record, put)
	if errors.Is(err, route.ErrOvertaken) {
		return nil // by what is later
	}
	if err != nil {
		err = im.ns.unacknowledged(ctx, &written, true, err)
	}
	return err
}
