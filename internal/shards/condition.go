package shards

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// compareWait is how long a host that is to compare is waited for, before the next one is asked.
const compareWait = 2 * time.Second

// find reads, at quorum, what the keys of a conditional write hold, and compares.
func (w *write) find(ctx context.Context) error {
	w.on = make([]*dbadapter.Version, len(w.drafts))
	for i := range w.drafts {
		d := &w.drafts[i]
		if d.If == nil {
			continue
		}
		found, err := w.get(ctx, d.Record.Key, GetOptions{Level: quorum.Quorum}, w.over)
		if err != nil {
			return err
		}
		var version dbadapter.Version
		if found.Record != nil {
			version = found.Record.Version
			w.seen[i] = []*dbadapter.Record{found.Record}
		}
		if version != *d.If {
			return &node.ItemError{Item: i, Held: version, Err: &dbadapter.ConflictError{Held: version, Free: d.If.IsZero()}}
		}
		w.on[i] = &version
	}
	return nil
}

// compare has one host commit a conditional write: the first whole old host that answers, in the
// row's order. It is given what the read has found, compares, and commits in one transaction.
func (w *write) compare(ctx context.Context, a *Asker) error {
	q := a.holds(wire.AskHold{Records: w.records, Batch: len(w.records) > 1, On: w.on})
	why := map[node.ID]error{}
	for _, id := range a.Row().Old {
		if !w.NS.Admits(id) {
			continue
		}
		before, sent := w.sent, &atomic.Bool{} // before: a host that has not answered may have committed it
		h, err := within(ctx, w.Shards, w.Net.Now()+compareWait, func(ctx context.Context) (h HostHeld, err error) {
			if err = w.give(ctx, a, id); err == nil {
				sent.Store(true) // as far as is known
				var was bool
				h, was, err = askHost(ctx, w.Shards, a, id, w.over, q)
				sent.Store(was)
			}
			return h, err
		})
		w.sent = w.sent || sent.Load()
		switch {
		case errors.Is(err, errRow):
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			why[id] = err
			continue
		}
		if !h.Whole { // it has written nothing
			w.sent, why[id] = before, errNotWhole
			continue
		}
		for i := range h.Outcomes {
			switch o := &h.Outcomes[i]; {
			case o.Other != nil && before && o.Other.Version == w.records[i].Version: // by a host that has not answered
			case o.Declined != nil: // this host has written nothing
				if w.sent = before; !before && errors.Is(o.Declined, node.ErrLate) {
					return errAgain // it is made anew, later
				}
				return o.Declined
			case o.Other != nil:
				conflict := &dbadapter.ConflictError{Held: o.Other.Version, Free: w.drafts[i].If != nil && w.drafts[i].If.IsZero()}
				w.sent = before
				return &node.ItemError{Item: i, Held: o.Other.Version, Err: conflict}
			}
		}
		w.accepted = true
		return nil
	}
	if w.sent {
		return fmt.Errorf("%w: a host that has not answered may have committed it (%s)", ErrUnconfirmed, words(why))
	}
	return fmt.Errorf("%w: nothing is written: no old host can compare (%s)", ErrTooFew, words(why))
}

// give gives a host what the read has found, so that it compares with that.
func (w *write) give(ctx context.Context, a *Asker, id node.ID) error {
	var found []dbadapter.Record
	for i, on := range w.on {
		if on != nil && !on.IsZero() {
			found = append(found, *w.seen[i][0])
		}
	}
	if len(found) == 0 {
		return nil
	}
	h, _, err := askHost(ctx, w.Shards, a, id, w.over, a.pass(found...))
	for i := range h.Outcomes {
		// What it holds in its place it compares with next; what it does not take for its date it has, or has collected.
		if d := h.Outcomes[i].Declined; err == nil && d != nil && !errors.Is(d, node.ErrLate) {
			err = d
		}
	}
	return err
}
