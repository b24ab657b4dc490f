package node

import (
	"context"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// mayOffer says what a key holds that a write rests on, and in which shard: the record can be replaced
// there alone. entry is that of the directory, if there is one, which names remote; told is what hosts
// hold that have refused an earlier try. A deletion may rest on the entry alone: its record is there, or
// was about to be written, and the tombstone supersedes both. Where a condition may be behind what this node itself has
// written, all are asked. An item that is written as of now rests on what is found.
func (w *ByWriter) mayOffer(ctx context.Context, remote *Remote, d *Draft, deletes bool, entry, told []*dbadapter.Record, recalled Recalled) (LookedUp, error) {
	late := !d.Late.IsZero()
	all := late || recalled.All() || d.If != nil && recalled.Rests() // a current host may lack a later write of the last seconds
	found, err := w.LookUp(ctx, d.Record.Key, all)
	if err == nil && !all && d.isBeyond(found.Record) {
		found, err = w.LookUp(ctx, d.Record.Key, true)
	}
	switch {
	case err != nil:
		return found, err
	case d.If != nil:
		if err := w.upTo(ctx, &found, d, entry, told); err != nil {
			return found, err
		}
		if recalled.Doubts(&found, true) {
			found.Behind()
		}
		if late {
			err := w.ns.restsOn(&found, d)
			if err == nil && found.Sure {
				err = w.laterElsewhere(ctx, &found, d)
			}
			if err != nil {
				return found, err
			}
		}
	case len(entry) > 0 && there(entry[0]) && (dangles(entry[0], found.Record) || cutShort(entry[0], found.Record)):
		found.Record, found.Shard = entry[0], remote.Shard()
	}
	return found, remote.Holds(*d, deletes, &found)
}

// ComingFor is for how long a condition is not decided by an entry that is later than the record: that
// follows within round trips, unless its author has ended.
const ComingFor = 3 * time.Second

// upTo has found, which the locator or one host may have given, say what the entry says, too: of a
// tombstone no look-up of a record tells, and where the entry is later than the record, all hosts are asked.
// The record of an entry that was made of an item with the same date, which hosts have declined, or not heard of, is not awaited by
// that item.
// ErrUnsure: the later record is about to be written, or a host holds one, and no look-up finds it.
func (w *ByWriter) upTo(ctx context.Context, found *LookedUp, d *Draft, entry, told []*dbadapter.Record) error {
	var latest *dbadapter.Record
	if len(entry) > 0 && beyond(entry[0], found.Record) {
		latest = entry[0]
		key := latest.Key
		if latest.Deleted {
			found.Record = latest
		} else {
			var err error
			if *found, err = w.lookUpFrom(ctx, key, w.WhereIs(key).Unheard(), true); err != nil {
				return err
			}
		}
		if !beyond(latest, found.Record) {
			w.dangling.came(key)
		} else if !d.Late.IsZero() && w.ns.DateOf(key, latest.Version) == dbadapter.TimestampAt(d.Late) {
			found.Sure = found.Sure || found.Void && !there(found.Record)
		} else if !d.Late.IsZero() && !w.Absent(key, latest.Version) { // the record of the entry, which may be on its way, is later than the item
			return fmt.Errorf("%w: go on with the import in %s", ErrDangling, AbsentFor)
		} else if now := w.do.Steady(); now-w.dangling.since(key, latest.Version, now) < ComingFor {
			return fmt.Errorf("%w: the directory has an entry that is later than the record: a write is on its way, try again in some seconds", ErrUnsure)
		}
	}
	for _, t := range told {
		if beyond(t, found.Record) && (latest == nil || beyond(t, latest)) {
			return fmt.Errorf("%w: a host holds a later record, which comes to the others: try again", ErrUnsure)
		}
	}
	return nil
}

// beyond reports whether a record is later than what is held, or nothing is.
func beyond(r, held *dbadapter.Record) bool {
	return held == nil || r.Version.Compare(held.Version) > 0
}

// cutShort reports whether a deletion has ended between the record's tombstone and its entry's. To
// delete again carries it to its end.
func cutShort(entry, found *dbadapter.Record) bool {
	return found != nil && found.Deleted && found.Version.Compare(entry.Version) > 0
}
