package node

import (
	"encoding/binary"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// A dated item whose date is not taken any more is written as of now, by this node. Its record has an incarnation
// of its own, as one on a condition: hosts refuse it for each that it has not seen, also of this node. That incarnation
// says the date, too, so that of several such items of a key, of whatever import at whatever node, the one stands that
// is dated last (docs/PROTOCOL.md, "Nodes, versions, signatures").

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

// LateBefore reports whether a version is of an item that was written as of now, with a date before another one. An
// item of that date has to be written as of now, too, to take its place.
func (ns *Namespace) LateBefore(key []byte, v dbadapter.Version, date time.Time) bool {
	at := dbadapter.TimestampAt(date)
	return v.Clock > at && ns.DateOf(key, v) < at
}

func (ns *Namespace) lateMask(key []byte, clock dbadapter.Timestamp) uint64 {
	return dbadapter.HomeHash(ns.secret, append(binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(key)), uint64(clock)), key...))
}
