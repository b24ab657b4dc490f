package node

import (
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
)

// Items of an import into a namespace that is cut into shards become records for the hosts.

// Expired reports whether an item has expired: it would hide what is there.
func (item *Item) Expired(ns *Namespace) bool {
	r := item.record()
	return r.Expired(ns.node.Now())
}

// Covers reports whether this node's role covers a record with a date. If not, from
// is the date from which on it does. floor: up to when hosts take none.
func (a *Asker) Covers(date time.Time, floor dbadapter.Timestamp) (from time.Time, covers bool) {
	at := dbadapter.TimestampAt(date)
	least := a.view.takenFrom(at, floor)
	return dateFrom(least), least == at
}

// MakeItems makes records of items. Of a dated item it makes the record with its
// date, which has no writer, and of another one it makes what Make does.
func (a *Asker) MakeItems(items []Item, seen [][]*dbadapter.Record) ([]dbadapter.Record, error) {
	writes := make([]dbadapter.Write, len(items))
	for i := range items {
		record := items[i].record()
		a.follow(seen[i]...)
		if items[i].Time.IsZero() {
			var err error
			if record.Version, err = a.ns.nextVersion(); err != nil {
				return nil, err
			}
			record.Replace(seen[i]...)
		} else {
			record.Version = dbadapter.Version{Clock: dbadapter.TimestampAt(items[i].Time)}
			a.ns.clock.Observe(hlc.Timestamp(record.Version.Clock)) // it may be a little ahead
		}
		var err error
		if writes[i].Record, err = dbadapter.Hash(a.view.Keys.Hasher, record); err != nil {
			return nil, err
		}
	}
	if err := a.view.authorize(writes); err != nil {
		return nil, err
	}
	records := make([]dbadapter.Record, len(writes))
	for i := range writes {
		records[i] = writes[i].Record.Record
	}
	return records, nil
}
