package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile"
)

// WriterOffer is how a write has ended.
type WriterOffer struct {
	route.Written
	// Version is that of the record which was made last; zero: none was.
	Version dbadapter.Version
	// Taken: a host holds a record or an entry of this write, or may. No error may then say that
	// nothing is written.
	Taken bool
	// named are entries for which hosts of the directory have refused that of this write.
	named  []*dbadapter.Record
	heeds  int // so often lists were made equal with those of hosts that disagree
	manner route.Manner
	// on is on what the entry rests: the version of the condition, or that of the latest entry that was seen beside it.
	on dbadapter.Version
	// first is how the hosts are asked that decide which of two such writes comes first.
	first route.Manner
	last  bool // no further try follows
	// alone hands over the record of an entry that hosts have taken, where this write has not done so; else nil.
	alone func(ctx context.Context)
}

// Offer writes a key: the entry goes to the directory first, and then the record to its shard, which
// is this node's own where the key has none. A deletion goes the other way round: an entry that is
// deleted while the record is there frees the key for another shard, and once that tombstone is
// collected, nothing tells the record from one whose entry was lost. deletes: a record must be
// there. made, if not nil, is told of each version before a host hears of it.
//
// Where hosts do not take it since this node's list of members is another one, the lists are made equal.
// Then what no host has taken is made anew; of what one has, or may have, the rest goes to
// the hosts that the list names now.
func (w *ByWriter) Offer(ctx context.Context, d Draft, deletes bool, ack route.Ack, made func(dbadapter.Version)) (o WriterOffer, err error) {
	ns, key := w.ns, d.Record.Key
	if err := (&dbadapter.Record{Key: key}).Validate(); err != nil {
		return o, err
	}
	if !d.Late.IsZero() {
		d.If = &dbadapter.Version{} // restsOn sets it
	}
	conditional := deletes || d.If != nil
	o.manner = route.Manner{Patient: conditional, Itself: d.If != nil, On: d.on()}
	o.first = o.manner
	o.first.InOrder = d.If != nil
	var others []*dbadapter.Record // of hosts that hold what was not seen, and the earlier tries
	var own []dbadapter.Version    // of earlier tries
	var held LookedUp              // on which the write rests,
	var heeded dbadapter.Version   // and what it heeds of this node's own writes
	var committed func()           // this node writes as a host of the record
	awaited := 0                   // 1: the write counts among those that callers wait for
	defer func() {
		if awaited > 0 {
			ns.Landed(key)
		}
		if committed != nil {
			committed()
		}
	}()
	tooLate := false // a host has declined the last try for what it has promised meanwhile
	for tries := 1; ; tries++ {
		entries := ns.RemoteIn(key, ns.Entries(key))
		need, err := entries.Enough(ack)
		if err != nil {
			return o.unmade(ctx, err)
		}
		before := ns.Recall(key, w.do.Steady())
		shard, seen, err := w.writtenIn(ctx, key, d.If != nil || before.Own != nil, own, o.named)
		if err != nil {
			return o.unmade(ctx, err)
		}
		remote := ns.RemoteIn(key, shard)
		if remote.Here() != nil && d.If == nil && committed == nil { // what is held here is no secret to this node: it is not noted
			committed = ns.commits([]Draft{d})
		}
		recalled := remote.recall(key, w.do.Steady()) // what other calls have written meanwhile, too
		recalled.mine = awaited
		if before.Own == nil && recalled.Own != nil && !recalled.here && tries < OfferTries { // which may be in another shard
			continue
		}
		if conditional {
			if !tooLate || recalled.version() != heeded { // else a host would have told of what has come since
				if held, err = w.mayOffer(ctx, remote, &d, deletes, seen, others, recalled); err != nil {
					return o.unmade(ctx, err)
				}
				heeded = recalled.version()
				o.manner.On, o.first.On = d.on(), d.on()
			}
			if there(held.Record) { // the entry may be lost, or another one by now
				shard = held.Shard
				remote = ns.RemoteIn(key, shard)
			}
			seen = append([]*dbadapter.Record{held.Record}, seen...)
		}
		if _, err := remote.Enough(ack); err != nil { // else an entry would lead to no record
			return o.unmade(ctx, err)
		}
		o.on = d.on()
		for _, r := range seen {
			if r != nil && r.Version.Compare(o.on) > 0 {
				o.on = r.Version
			}
		}
		d.Seen = append(seen, others...)
		if recalled.Own != nil {
			d.Seen = append(d.Seen, recalled.Own)
		}
		entry, record, err := w.madeOf(d, remote, entries)
		if err = cmp.Or(err, context.Cause(ctx)); err != nil { // nothing has begun yet
			return o.unmade(ctx, err)
		}
		if awaited == 0 { // before it is noted: another call may recall it at once
			awaited = 1
			ns.Await(key)
		}
		if (committed == nil || remote.Here() == nil) && !remote.note(record, recalled.Own, d.If != nil, w.do.Steady()) { // another call has written the key meanwhile
			if tries == OfferTries {
				return o.unmade(ctx, errWrittenBeside)
			}
			tooLate = false
			continue
		}
		home, index := ns.ToldAs(key)
		if !record.Deleted { // also where it is not acknowledged the key may be there, whatever the locator has heard
			w.do.Locator().Wrote(home, index, shard, w.do.Now())
		}
		if o.Version, o.last = record.Version, tries == OfferTries; made != nil {
			made(o.Version)
		}
		if record.Deleted {
			err = w.handDeletion(ctx, &o, record, shard, entry, ack, d.If == nil || there(held.Record))
		} else {
			err = w.handRecord(ctx, &o, record, shard, entry, need, ack)
		}
		if err == nil {
			if set := remote.Here(); set != nil {
				if held, err := set.Held(key); err == nil && held != nil && held.Version == record.Version {
					ns.HeldHere(record)
				}
			}
			if !record.Deleted {
				w.do.Locator().Wrote(home, index, shard, w.do.Now())
			}
			return o, nil
		}
		if !o.Taken {
			ns.Withdraw(remote, record, w.do.Steady())
		}
		switch {
		case ctx.Err() != nil || tries >= OfferTries:
		case (errors.Is(err, route.ErrOvertaken) || errors.Is(err, route.ErrRefused) && late(&o.Written)) && !(o.Taken && conditional), !o.Taken && w.heeds(ctx, &o, err):
			tooLate = d.If != nil && late(&o.Written) && len(o.Others) == 0
			if others = append(others, o.Others...); d.If == nil || tooLate { // the own entry is there
				others = append(others, record)
			}
			own = append(own, record.Version)
			continue
		}
		return o.ended(ctx, err)
	}
}

// madeOf makes a record and its entry. A record that rests on a version names that alone: what it
// rests on comes first in Seen, and what this node was only told of, a host that holds it is to keep. Its
// entry takes the place of those.
func (w *ByWriter) madeOf(d Draft, remote, entries *Remote) (entry, record *dbadapter.Record, err error) {
	seen := d.Seen
	if d.If != nil {
		d.Seen, d.Told = seen[:1], seen[1:]
	}
	if record, err = remote.Make(d); err != nil {
		return nil, nil, err
	}
	names := *record
	names.Replace(seen...)
	entry, err = entries.Entry(&names, remote.Shard())
	return entry, record, err
}

// handRecord hands over an entry and, once a host has it, the record; then the entry has the acknowledgements that are to be had.
// A write that is cut off, or refused by another host for the last time, has its record then: an entry alone would lead to none.
func (w *ByWriter) handRecord(ctx context.Context, o *WriterOffer, record *dbadapter.Record, shard placement.Shard, entry *dbadapter.Record, need int, ack route.Ack) error {
	until := w.do.Now() + EntryPatience
	// Of two writes on a condition the first host of the directory takes one, and the other one leaves nothing. Any other
	// one, for several hosts, hears of what they refuse it for before its record is written.
	first := o.first
	first.Hears = !first.Patient && need > 1
	err := w.handEntry(ctx, o, entry, 1, first)
	if err == nil && first.Hears && len(o.Others) > 0 {
		err = route.ErrOvertaken
	}
	ends := o.Taken && !first.Patient && (o.last || ctx.Err() != nil) // what is refused now is not made anew
	if err != nil && !(ends && (errors.Is(err, route.ErrOvertaken) || errors.Is(err, route.ErrUnconfirmed))) {
		if o.Taken && !first.Patient {
			o.alone = func(ctx context.Context) { _, _ = w.HandOver(ctx, w.ns.RemoteIn(record.Key, shard), record, 1) }
		}
		return err
	}
	o.alone = nil
	entered := o.Held
	err = w.handOn(ctx, o, shard, record, ack, o.first, until) // in order: a deletion may meet it
	if first.InOrder && !o.Written.Taken() && (late(&o.Written) || errors.Is(err, route.ErrOvertaken) && w.retract(ctx, shard, entry)) {
		o.Taken = false
		return err
	}
	o.Taken = true
	if err != nil || entered >= need {
		return err
	}
	written := o.Written
	if err = w.handEntry(ctx, o, entry, ack, o.manner); err == nil {
		o.Written = written
	}
	return err
}

// retract takes back the entry of a write on a condition whose record no host has taken, since a deletion came first there: it
// deletes the entry, as that deletion does unless the entry kept it from it. The tombstone comes right behind the entry, and has
// an incarnation of its own: what has followed the entry meanwhile stands. So does the entry's tombstone of a deletion that has
// taken the entry away. false: the entry may stand.
func (w *ByWriter) retract(ctx context.Context, shard placement.Shard, entry *dbadapter.Record) bool {
	key := entry.Key
	found, err := w.do.LookUpIn(ctx, shard, key, true)
	if err != nil || !found.Sure || found.Record == nil || !found.Record.Deleted {
		return false
	}
	tombstone := &dbadapter.Record{Key: key, Deleted: true, Version: entry.Version}
	tombstone.Version.Clock++
	tombstone.Version.Incarnation = w.ns.node.Random(ForIncarnation)
	tombstone.Replace(entry, found.Record)
	entries := w.ns.RemoteIn(key, w.ns.Entries(key))
	gone, err := entries.Entry(tombstone, shard)
	if err != nil {
		return false
	}
	written, err := w.HandOver(ctx, entries, gone, 1)
	return err == nil || errors.Is(err, route.ErrOvertaken) && slices.ContainsFunc(written.Others, func(r *dbadapter.Record) bool { return beyond(r, entry) })
}

// handEntry hands over an entry, and notes for which others it is refused.
func (w *ByWriter) handEntry(ctx context.Context, o *WriterOffer, entry *dbadapter.Record, ack route.Ack, how route.Manner) error {
	how.On = o.on
	err := w.handOn(ctx, o, w.ns.Entries(entry.Key), entry, ack, how, 0)
	o.named = append(o.named, o.Others...)
	return err
}

// handDeletion hands over a tombstone and then that of its entry. decided: the hosts of the shard have decided what comes first,
// as they do unless it is a deletion on the version of another one, of which they need hold nothing.
func (w *ByWriter) handDeletion(ctx context.Context, o *WriterOffer, record *dbadapter.Record, shard placement.Shard, entry *dbadapter.Record, ack route.Ack, decided bool) error {
	err := w.handOn(ctx, o, shard, record, ack, o.first, 0)
	if err != nil {
		return err
	}
	o.Taken = true
	written := o.Written
	entries, how := w.ns.Entries(entry.Key), o.manner
	how.On = o.on
	err = w.handOn(ctx, o, entries, entry, ack, how, 0)
	// Of two writes in one shard the later one stands there. One of another shard the tombstone does not meet.
	meets := func(later bool) bool {
		return errors.Is(err, route.ErrOvertaken) && w.allIn(shard, o.Others, decided) &&
			later == slices.ContainsFunc(o.Others, func(r *dbadapter.Record) bool { return beyond(r, entry) })
	}
	if meets(false) {
		how.Insists = true // an earlier write whose record loses against the tombstone, or has: its entry would lead to none
		err = w.handOn(ctx, o, entries, entry, ack, how, 0)
	}
	if meets(true) {
		err = nil // a later write follows the deletion, which its shard holds
	}
	if err == nil {
		o.Written = written
	}
	return err
}

// allIn reports whether entries name a shard, or are deleted, if they may be.
func (w *ByWriter) allIn(shard placement.Shard, entries []*dbadapter.Record, deleted bool) bool {
	return !slices.ContainsFunc(entries, func(r *dbadapter.Record) bool {
		named, err := directory.ShardOf(r, w.ns.rule.Shards)
		return err == nil && named != shard || err != nil && !deleted
	})
}

// handOn is HandOver as a step of a write, to the hosts that the list names now. What a host may have
// taken is not made anew: it goes on as it is where the lists are made equal. until, if not 0, is when
// it is too late.
func (w *ByWriter) handOn(ctx context.Context, o *WriterOffer, set placement.Shard, record *dbadapter.Record, ack route.Ack, how route.Manner, until time.Duration) error {
	for {
		if until > 0 && w.do.Now() > until {
			return errSlept
		}
		var err error
		o.Written, err = w.handOver(ctx, w.ns.RemoteIn(record.Key, set), record, ack, how)
		o.Taken = o.Taken || o.Written.Taken()
		if !o.Taken || !w.heeds(ctx, o, err) {
			return err
		}
	}
}

// heeds reports whether the write may offer again what hosts have not taken. It may where this node has
// ceased to be a host of the set, and where it has made its list of members equal with that of a host
// that goes by another one.
func (w *ByWriter) heeds(ctx context.Context, o *WriterOffer, err error) bool {
	if err == nil || errors.Is(err, route.ErrOvertaken) || o.heeds == maxHeeds || ctx.Err() != nil {
		return false
	}
	o.heeds++
	return errors.Is(err, ErrNotHost) || w.do.Heed(ctx, &o.Written)
}

// unmade follows a record that could not be made. What an earlier try has written stays.
func (o WriterOffer) unmade(ctx context.Context, err error) (WriterOffer, error) {
	o.Written = route.Written{}
	return o.ended(ctx, err)
}

// ended follows the last try. An entry that hosts have taken has its record then: alone it would lead to none.
func (o WriterOffer) ended(ctx context.Context, err error) (WriterOffer, error) {
	if o.alone != nil {
		o.alone(ctx)
	}
	return o, err
}

// EntryPatience is how much later than its entry a record is written, at the latest: an entry
// without a record for longer counts as one whose author has ended.
const EntryPatience = 30 * time.Second

var errSlept = fmt.Errorf("%w: this machine has slept between the entry of the directory and the record, or was too slow: write it again", reconcile.ErrBusy)

// HandOver gives a record to the hosts of its set, this node among them if it is one.
func (w *ByWriter) HandOver(ctx context.Context, remote *Remote, record *dbadapter.Record, ack route.Ack) (route.Written, error) {
	return w.handOver(ctx, remote, record, ack, route.Manner{})
}

func (w *ByWriter) handOver(ctx context.Context, remote *Remote, record *dbadapter.Record, ack route.Ack, how route.Manner) (route.Written, error) {
	need, err := remote.Enough(ack)
	if err != nil {
		return route.Written{}, err
	}
	var here ID
	settled := false
	if remote.Here() != nil && !how.InOrder {
		held, err := remote.HoldHere(context.WithoutCancel(ctx), record, how) // what has begun goes on
		switch {
		case err != nil:
			return route.Written{}, err
		case held.Declined != nil:
			return route.Written{}, held.Declined
		case held.Other != nil:
			return route.Written{Others: []*dbadapter.Record{held.Other}}, route.ErrOvertaken
		case how.Itself && held.Later != nil:
			return route.Written{Others: []*dbadapter.Record{held.Later}, Hosts: []route.Holder{{Peer: w.ns.node.ID, Outcome: &held}}}, route.ErrOvertaken
		case held.Elsewhere:
			return route.Written{}, ErrNotHost
		case how.Itself && !held.Settled: // it is asked again in its turn, until it is
			return w.do.Hand(ctx, remote, record, "", false, need, how)
		case need <= 1 && !how.Hears:
			return route.Written{Need: need, Held: 1, Settled: held.Settled, Hosts: []route.Holder{{Peer: w.ns.node.ID, Outcome: &held}}}, nil // a push brings it to the others
		}
		here, settled = w.ns.node.ID, held.Settled
	}
	return w.do.Hand(ctx, remote, record, here, settled, need, how)
}
