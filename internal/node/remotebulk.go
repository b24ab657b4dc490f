package node

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Records that are imported into a shard which this node need not hold go to its hosts, many
// in a message. A host takes those that say something new.

// Expired reports whether an item has expired: it would hide what is there.
func (item *Item) Expired(ns *Namespace) bool {
	r := item.record()
	return r.Expired(ns.node.Now())
}

// ExpiryStamp is when the item's record expires; 0: never.
func (item *Item) ExpiryStamp() dbadapter.Timestamp { return item.record().Expires }

// MakeAll makes records of items, for the hosts to hold: of a dated one the record with its
// date, which has no writer, of another one with a version of this node, above what was seen
// of its key, which it replaces. seen has what was seen of each.
func (r *Remote) MakeAll(items []*Item, seen [][]*dbadapter.Record) ([]dbadapter.Record, error) {
	writes := make([]dbadapter.Write, len(items))
	for i, item := range items {
		record := item.record()
		r.behind(seen[i]...)
		if item.Time.IsZero() {
			var err error
			if record.Version, err = r.ns.nextVersion(); err != nil {
				return nil, err
			}
			record.Replace(seen[i]...)
		} else {
			record.Version = dbadapter.Version{Clock: dbadapter.TimestampAt(item.Time)}
			r.ns.clock.Observe(hlc.Timestamp(record.Version.Clock)) // it may be a little ahead
		}
		hashed, err := dbadapter.Hash(r.view.Keys.Hasher, record)
		if err != nil {
			return nil, err
		}
		writes[i] = dbadapter.Write{Record: hashed}
	}
	if err := r.view.authorize(writes); err != nil {
		return nil, err
	}
	records := make([]dbadapter.Record, len(writes))
	for i := range writes {
		records[i] = writes[i].Record.Record
	}
	return records, nil
}

// AskHoldNew asks a host to hold those of the records whose content it does not hold yet. One
// that has a writer it takes only if it holds nothing that the record has not seen.
// Those with a writer and those without go in questions of their own.
func (r *Remote) AskHoldNew(remote ID, records []dbadapter.Record) (*wire.Ask, error) {
	return r.ask(remote, &wire.AskHold{Shard: uint32(r.shard), Seen: records[0].Version.Writer != 0, New: true, Records: records})
}

// AskHoldAll asks a host to hold records, as AskHold does: all have a writer, or none has.
func (r *Remote) AskHoldAll(remote ID, records []dbadapter.Record) (*wire.Ask, error) {
	return r.ask(remote, &wire.AskHold{Shard: uint32(r.shard), Seen: records[0].Version.Writer != 0, Records: records})
}

// AskLook asks a host what it holds under the keys of records, which say what is to be there
// (Sketch): an outcome is There, has what is held instead, or is zero but for Settled.
func (r *Remote) AskLook(remote ID, records []dbadapter.Record) (*wire.Ask, error) {
	return r.ask(remote, &wire.AskHold{Shard: uint32(r.shard), Look: true, Records: records})
}

// Sketch is the record that an item would make, to be compared with what is there: it is not
// signed, and its version counts only where the item is dated.
func (item *Item) Sketch(ns *Namespace) dbadapter.Record {
	record := item.record()
	record.Version = dbadapter.Version{Clock: dbadapter.TimestampAt(ns.node.Now()), Writer: ns.self, Incarnation: ns.incarnation}
	if !item.Time.IsZero() {
		record.Version = dbadapter.Version{Clock: dbadapter.TimestampAt(item.Time)}
	}
	return record
}

// Outcomes is what a message of the peer answers to AskHoldNew, AskHoldAll or AskLook: an outcome for
// each record. It keeps nothing of m. Where the peer is no host, there is one outcome, which says so.
func (r *Remote) Outcomes(remote ID, ask *wire.Ask, m wire.Message) ([]route.Outcome, error) {
	reply, err := r.reply(remote, ask, m)
	if err != nil {
		return nil, err
	}
	all, err := r.outcomes(reply.Answer.(*wire.HoldAnswer), ask.Question.(*wire.AskHold))
	r.follow(reply, all...)
	return all, err
}

// follow has this node's next version be later than the time of a host that declines a record as too late: by that
// clock it has made its promise.
func (r *Remote) follow(reply *wire.Reply, outcomes ...route.Outcome) {
	if slices.ContainsFunc(outcomes, func(o route.Outcome) bool { return errors.Is(o.Declined, ErrLate) }) {
		r.ns.believe(wire.Greeting{Tau: dbadapter.TimestampAt(time.UnixMilli(int64(reply.Greeting.Time) + 1))})
	}
}

func (r *Remote) outcomes(said *wire.HoldAnswer, asked *wire.AskHold) ([]route.Outcome, error) {
	if said.Elsewhere != nil {
		return []route.Outcome{{Elsewhere: true, Layout: layoutOf(said.Elsewhere)}}, nil
	}
	if len(said.Outcomes) != len(asked.Records) {
		return nil, fmt.Errorf("%w: %d outcomes of %d records", reconcile.ErrProtocol, len(said.Outcomes), len(asked.Records))
	}
	all := make([]route.Outcome, len(said.Outcomes))
	var err error
	for i := range all {
		var failed error
		all[i], failed = r.outcomeOf(said, i, asked)
		if errors.Is(failed, ErrDeclined) { // of this record alone
			all[i].Declined, failed = failed, nil
		}
		err = cmp.Or(err, failed)
	}
	return all, err
}
