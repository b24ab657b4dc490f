package node

import (
	"cmp"
	"errors"
	"fmt"

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
		for _, s := range seen[i] {
			r.ns.clock.Observe(hlc.Timestamp(s.Version.Clock))
		}
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

// HoldNew is what a message of the peer answers to AskHoldNew: an outcome for each record. It
// keeps nothing of m. Where the peer is no host, there is one outcome, which says so.
func (r *Remote) HoldNew(remote ID, ask *wire.Ask, m wire.Message) ([]route.Outcome, error) {
	reply, err := r.reply(remote, ask, m)
	if err != nil {
		return nil, err
	}
	said, asked := reply.Answer.(*wire.HoldAnswer), ask.Question.(*wire.AskHold)
	if said.Elsewhere != nil {
		return []route.Outcome{{Elsewhere: true, Layout: layoutOf(said.Elsewhere)}}, nil
	}
	if len(said.Outcomes) != len(asked.Records) {
		return nil, fmt.Errorf("%w: %d outcomes of %d records", reconcile.ErrProtocol, len(said.Outcomes), len(asked.Records))
	}
	all := make([]route.Outcome, len(said.Outcomes))
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
