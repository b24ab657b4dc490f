package node

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// A dated item whose date is not taken any more is written as of now, by this node. Where the namespace is cut into shards, that
// is a write on a condition: the key is looked up, and holds what is dated before the item, as far as hosts know for sure. So no put
// and no deletion that is later than the date gives way to it, and nothing that comes meanwhile. Its incarnation says the date, so
// that of several such items of a key, of whatever import at whatever node, the one stands that is dated last
// (docs/PROTOCOL.md, "Nodes, versions, signatures").

// What the key of such an item was found to hold.
var (
	ErrLater = errors.New("the key holds what is later than the item's date")
	ErrThere = errors.New("the key holds what the item says")
)

// holdsItem reports whether what is held says what an item with a date does, and is not dated before it.
func (set *Set) holdsItem(held *dbadapter.Record, item *Item) bool {
	r := item.record()
	return held != nil && held.SameContent(&r) && set.ns.DateOf(held.Key, held.Version) >= dbadapter.TimestampAt(item.Time)
}

// Late reports whether an item with a date has to be written as of now, on what hosts hold. One that this node holds, or what says
// the same, is not written.
func (set *Set) Late(item *Item) (bool, error) {
	if item.Time.IsZero() {
		return false, nil
	}
	held, err := set.Held(item.Key)
	return err == nil && set.isLate(held, item) && !set.holdsItem(held, item), err
}

// isLate reports whether the date of an item is not taken any more, or would not stand against that of what is held.
func (set *Set) isLate(held *dbadapter.Record, item *Item) bool {
	return !item.Time.IsZero() && (set.late(dbadapter.TimestampAt(item.Time)) || held != nil && set.ns.LateBefore(item.Key, held.Version, item.Time))
}

// restsOn has the draft of an item that is written as of now rest on what its key was found to hold, for sure. That is what has the
// latest version; what any host holds, with an earlier one, may be dated later still.
func (ns *Namespace) restsOn(found *LookedUp, d *Draft) error {
	held := found.Record
	d.If = &dbadapter.Version{}
	if !found.Sure { // as of any condition
		return nil
	}
	all, err := ns.heardOf(found, d.Record.Key)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(append(all, held), d.isBefore(ns)) {
		return ErrLater
	}
	switch {
	case held == nil && d.Record.Deleted:
		return ErrThere
	case held == nil:
		return nil
	}
	d.If = &held.Version
	switch same := held.SameContent(&d.Record); {
	case ns.DateOf(held.Key, held.Version) < dbadapter.TimestampAt(d.Late):
		return nil
	case !same: // of two of one date the first stands
		return ErrLater
	case held.Version.Writer != 0:
		return ErrThere
	}
	return nil // with its date, which not all hosts take
}

// isBefore reports whether the item is dated before what a record says.
func (d *Draft) isBefore(ns *Namespace) func(*dbadapter.Record) bool {
	return func(r *dbadapter.Record) bool {
		return r != nil && ns.DateOf(d.Record.Key, r.Version) > dbadapter.TimestampAt(d.Late)
	}
}

// heardOf are the records that nodes were heard to hold under a key, this node among them.
func (ns *Namespace) heardOf(found *LookedUp, key []byte) (all []*dbadapter.Record, err error) {
	for _, h := range found.Heard {
		if h.Answer != nil {
			all = append(all, h.Answer.Record)
		}
	}
	if set := ns.held(ns.Home(key)); set != nil {
		own, err := set.Held(key)
		if err != nil {
			return nil, err
		}
		all = append(all, own)
	}
	return all, nil
}

// lateIncarnation is that of the record of an item with a date.
func (ns *Namespace) lateIncarnation(key []byte, clock dbadapter.Timestamp, date time.Time) uint64 {
	return ns.lateMask(key, clock) ^ uint64(dbadapter.TimestampAt(date))
}

// DateOf is the date of what a version of a key says: that of the item where it is one that was written as of
// now, else its clock. Of versions of other records one in some 10^8 is taken for such a one.
func (ns *Namespace) DateOf(key []byte, v dbadapter.Version) dbadapter.Timestamp {
	if v.Writer != 0 { // a dated record's version is its date
		date := dbadapter.Timestamp(ns.lateMask(key, v.Clock) ^ v.Incarnation)
		if at := date.Time(); date <= v.Clock && date == dbadapter.TimestampAt(at) && !at.Before(dbadapter.Epoch) {
			return date
		}
	}
	return v.Clock
}

// lateDate is the date of an item that was written as of now, or 0 of any other record.
func (ns *Namespace) lateDate(r *dbadapter.Record) dbadapter.Timestamp {
	if date := ns.DateOf(r.Key, r.Version); date != r.Version.Clock {
		return date
	}
	return 0
}

// LateBefore reports whether a version is of an item that was written as of now, with a date before another one. An
// item of that date has to be written as of now, too, to take its place.
func (ns *Namespace) LateBefore(key []byte, v dbadapter.Version, date time.Time) bool {
	at := dbadapter.TimestampAt(date)
	return v.Writer != 0 && v.Clock >= at && ns.DateOf(key, v) < at
}

func (ns *Namespace) lateMask(key []byte, clock dbadapter.Timestamp) uint64 {
	return dbadapter.HomeHash(ns.secret, append(binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(key)), uint64(clock)), key...))
}
