package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// landing is how far an item has come to the hosts of its shard.
type landing struct {
	record *dbadapter.Record // nil: it is to be made
	// seen are what hosts were found to hold in its place, and the records that were made of
	// it before.
	seen  []*dbadapter.Record
	noted *dbadapter.Record // the last that this node remembers of it
	held  []ID              // hosts that hold the record, or what it says
	took  bool              // one holds the record itself
	here  *shard            // where this node holds it, too; nil: it does not
	// insists: the record is brought to hosts that hold what it says, too.
	insists bool
	// foreign: the record was not made of the item. This node held it instead, and it is
	// brought to the other hosts as it is.
	foreign bool
	behind  bool // a host has promised meanwhile to hold all up to a later version
	// late are the hosts that take its date no more.
	late []ID
	// The rest is what becomes of it.
	done, fresh, stale, full, expired, refused bool
	sent                                       bool // a host may hold it that has not said so
	why                                        map[ID]error
	err                                        error // why this node could not prepare it: it is given up
}

// taken reports whether a node holds what was made of the item, or may.
func (i *imported) taken() bool { return len(i.held) > 0 || i.sent || i.fresh || i.here != nil }

// over reports whether nothing more is done for the item.
func (i *imported) over() bool { return i.done || i.err != nil }

// again has the record made anew, over what a host holds in its place, and itself.
func (i *imported) again(other *dbadapter.Record) {
	i.seen = append(i.seen, other)
	i.remake()
}

// remake has the record made anew, over itself.
func (i *imported) remake() {
	if i.record != nil {
		i.seen = append(i.seen, i.record)
	}
	i.record, i.held, i.took, i.behind = nil, nil, false, false
}

// heard notes what a host has done with the record.
func (i *imported) heard(id ID, o *route.Outcome) {
	i.fresh = i.fresh || o.Held
	if i.record == nil { // another host has had it made anew meanwhile
		return
	}
	dated := i.record.Version.Writer == 0
	switch {
	case o.Held:
		i.took = true
	case o.There:
		i.compare(id, o)
	case o.Other != nil && !dated && !i.foreign:
		i.again(o.Other)
		return
	case o.Other != nil:
		i.stale = true
	case errors.Is(o.Declined, ErrLimit):
		i.full = true
	case dated && i.stale && errors.Is(o.Declined, node.ErrLate): // what another host holds in its place is to come to this one
	case dated && !i.foreign && errors.Is(o.Declined, node.ErrLate):
		if !slices.Contains(i.late, id) {
			i.late = append(i.late, id)
		}
		return
	default:
		i.failed(id, o.Declined, false)
		i.behind = i.behind || !dated && !i.foreign && errors.Is(o.Declined, node.ErrLate)
		return
	}
	if !slices.Contains(i.held, id) {
		i.held = append(i.held, id)
	}
}

// failed notes why a host does not hold it.
func (i *imported) failed(id ID, err error, sent bool) {
	if i.why == nil {
		i.why = map[ID]error{}
	}
	i.why[id], i.sent = err, i.sent || sent
}

// count adds what has become of the item.
func (r *ImportResult) count(i *imported) {
	r.Items++
	switch {
	case i.refused:
		r.Refused++
	case i.expired:
		r.Expired++
	case i.full:
		r.Full++
	case i.fresh:
		r.Written++
	case i.stale:
		r.Stale++
	default:
		r.Unchanged++
	}
}

// hand brings items of a shard to its hosts, until as many as are asked for hold each. It
// returns the error of the first item for which that failed.
func (im *shardImport) hand(ctx context.Context, number placement.Shard, part []*imported) (counts ImportResult, failed *itemError) {
	over := time.Now().Add(importPatience)
	heeded := false
	var need int
	var err error
	for tries := 1; ; tries++ {
		remote := im.ns.core.Shard(number)
		left := slices.DeleteFunc(slices.Clone(part), (*imported).over)
		if need, err = remote.Enough(im.ack); err == nil {
			err = im.turn(ctx, remote, need, left)
		}
		left = slices.DeleteFunc(left, (*imported).over)
		why := refusalsOf(left)
		pause, again := importAgain(tries, why, time.Now().After(over))
		if len(left) == 0 || err != nil || ctx.Err() != nil || !again {
			break
		}
		if len(why) == 0 {
			continue
		}
		if !heeded && im.ns.heedHosts(ctx, why) {
			heeded = true
		} else if !sleep(ctx, pause) {
			break
		}
	}
	for _, i := range part {
		if i.done {
			counts.count(i)
			im.withdraw(im.ns.core.Shard(number), i)
			if i.here == nil {
				im.ns.wrote(i.Key)
			}
			continue
		}
		return counts, &itemError{i.number, im.explain(ctx, i, need, err)}
	}
	return counts, nil
}

// refusalsOf are why hosts have not done what items ask of them.
func refusalsOf(items []*imported) map[ID]error {
	why := map[ID]error{}
	for _, i := range items {
		for id, err := range i.why {
			why[id] = err
		}
	}
	return why
}

// importAgain reports whether hosts are asked once more about items that too few have taken, and after
// which pause. late: the time is over. Up to then a host that is busy is asked again, however often:
// it takes what other imports bring, and has said that it would take more.
func importAgain(tries int, why map[ID]error, late bool) (pause time.Duration, again bool) {
	if tries >= node.OfferTries {
		busy := false
		for _, err := range why {
			busy = busy || errors.Is(err, ErrBusy)
		}
		late = late || !busy
	}
	return time.Duration(min(tries, 10)) * 100 * time.Millisecond, !late
}

// elsewhere is why a host has not taken records: it is none, by a layout.
type elsewhere struct{ layout route.Layout }

func (e *elsewhere) Error() string { return errNoHost.Error() }

// Unwrap makes it what other writes call it.
func (e *elsewhere) Unwrap() error { return errNoHost }

// heedHosts is heed, of what hosts have answered to an import.
func (ns *Namespace) heedHosts(ctx context.Context, why map[ID]error) bool {
	var moved route.Layout
	var by node.ID
	for id, err := range why {
		if e, ok := errors.AsType[*elsewhere](err); ok && e.layout.Epoch > moved.Epoch {
			moved, by = e.layout, node.ID(id)
		}
	}
	return ns.heed(ctx, ns.node.deadline(ctx), why, moved, by)
}

// explain is the error of an item that too few hosts hold.
func (im *shardImport) explain(ctx context.Context, i *imported, need int, err error) error {
	switch cause := context.Cause(ctx); {
	case i.err != nil && i.taken():
		return fmt.Errorf("%w: %w", ErrUnconfirmed, i.err)
	case i.err != nil:
		return i.err
	case cause != nil && !i.taken():
		return cause
	case i.taken():
		err = fmt.Errorf("%w: %s", ErrUnconfirmed, holding(len(i.held), need, i.why))
	case err != nil:
	default:
		err = fmt.Errorf("%w: no host of its shard has taken it; %s", ErrUnreachable, words(i.why))
		for _, why := range i.why {
			if errors.Is(why, node.ErrDeclined) {
				err = fmt.Errorf("no host of its shard has taken it: %w", why)
			}
		}
	}
	return err
}

// turn asks the hosts once to hold items, in messages.
func (im *shardImport) turn(ctx context.Context, remote *node.Remote, need int, items []*imported) error {
	var unsure error // of a deletion: others would wait as long for the same hosts, one after the other, and the import ends with the first
	for _, i := range items {
		looksUp := i.deletes() && i.record == nil && i.here == nil && len(i.seen) == 0
		if looksUp && unsure != nil {
			i.err = unsure
			continue
		}
		if i.err = im.prepare(ctx, i); looksUp {
			unsure = i.err
		}
	}
	for _, as := range []question{undated, dated, insisting} {
		for rest := items; len(rest) > 0; {
			var some []*imported
			some, rest = cut(rest, as)
			if len(some) == 0 {
				continue
			}
			if err := im.message(ctx, remote, need, some); err != nil {
				return err
			}
		}
	}
	return nil
}

// question is what items are asked about in: those of one go together.
type question uint8

const (
	undated   question = iota // their records have a writer, or will have one
	dated                     // they have none
	insisting                 // undated, and brought to hosts that hold what they say, too
)

// cut takes as many items of a question as a message has room for.
func cut(items []*imported, as question) (some, rest []*imported) {
	size := 0
	for at, i := range items {
		if i.over() || i.question() != as {
			continue
		}
		size += (&dbadapter.Record{Key: i.Key, Value: i.Value}).Weight() + recordCost
		if len(some) > 0 && (size > wire.BatchBytes || len(some) == wire.BatchRecords) {
			return some, items[at:]
		}
		some = append(some, i)
	}
	return some, nil
}

func (i *imported) question() question {
	switch {
	case i.record != nil && i.record.Version.Writer == 0, i.record == nil && !i.Time.IsZero():
		return dated
	case i.insists:
		return insisting
	}
	return undated
}

// message asks hosts to hold the records of some items: first those that have answered so
// far, and the others where they are needed.
func (im *shardImport) message(ctx context.Context, remote *node.Remote, need int, items []*imported) error {
	if err := im.make(remote, items); err != nil {
		return err
	}
	if items = slices.DeleteFunc(items, (*imported).over); len(items) == 0 {
		return nil
	}
	records := make([]dbadapter.Record, len(items))
	for at, i := range items {
		records[at] = *i.record
	}
	named, err := remote.Hosts()
	if err != nil {
		return err
	}
	for _, i := range items { // one that a new layout does not name counts no longer
		i.held = slices.DeleteFunc(i.held, func(id ID) bool { return !slices.Contains(named, node.ID(id)) })
	}
	about := remote.AskHoldNew
	if items[0].insists {
		about = remote.AskHoldAll
	}
	im.inquire(ctx, remote, named, &inquiry{
		weight: weigh(records), oneList: true, remembered: records,
		about: func(id node.ID) (*wire.Ask, error) { return about(id, records) },
		heard: func(id ID, outcomes []route.Outcome, sent bool, err error) {
			for at, i := range items {
				switch {
				case err != nil:
					i.failed(id, err, sent)
				default:
					i.heard(id, &outcomes[at])
				}
			}
		},
		lacks: func() bool {
			return slices.ContainsFunc(items, func(i *imported) bool { return i.record != nil && !i.full && len(i.held)+len(i.late) < need })
		},
	})
	agreed := im.agreed(remote)
	for _, i := range items {
		i.done = i.full || i.record != nil && len(i.held)+len(i.late) >= need // a host that takes it has it stay
		i.refused = i.done && len(i.held) == 0 && !i.sent && len(i.late) > 0
		switch {
		case i.done && i.onWord() && !agreed(i):
			i.done, i.insists, i.held, i.why = false, true, nil, nil
		case i.done:
			im.unwritten(remote, i)
		case i.behind && i.record != nil:
			i.again(i.record)
		}
		if i.over() {
			im.landed(i)
		}
	}
	return nil
}

// weigh is how much records weigh.
func weigh(records []dbadapter.Record) (weight int) {
	for i := range records {
		weight += records[i].Weight()
	}
	return weight
}
