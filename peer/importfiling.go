package peer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// due is what an item waits for.
type due uint8

const (
	locating  due = iota // the locator's word on where the key is
	entryDue             // whether its entry names the shard that is expected
	searching            // the entry itself, since it names another one, or may
	comparing            // whether its shard holds what the item says
	making               // the records
	entering             // hosts of the directory that hold the entry
	writing              // hosts of the shard that hold the record
	hidden               // what is behind an entry that is later than the item
)

// filing is where an item stands in an import by placement writer.
type filing struct {
	stage due
	shard placement.Shard
	// entered: as many hosts hold the entry as the import asks for. bound: one holds an entry of
	// this import, so that the record has to follow; of a deletion, a tombstone, so that its entry has to.
	entered, bound bool
	slow           bool          // a record was made in vain, since it came too late behind its entry
	arrives        bool          // a host holds what the item says, and another one may be about to
	searched       bool          // the shard is that of the entry itself
	unasked        bool          // the locator alone has said that the key is in none
	began          time.Duration // the entry was offered, by the namespace's clock
	// versions are those of the records that were made of the item, and named the entries for which
	// hosts of the directory have refused theirs.
	versions []dbadapter.Version
	named    []*dbadapter.Record
	// outdated: the shard holds a record that is later than the item. dated is the date of an item that is
	// written as of now, since a later entry, the version ended, leads to no record.
	outdated bool
	dated    time.Time
	ended    dbadapter.Version
	// What hosts said in this due: that they hold something else, nothing, and nothing for sure.
	unlike, none, sure bool
}

// own is the shard of a key that has none.
func (i *imported) own(ns *Namespace) placement.Shard {
	if i.Time.IsZero() {
		return ns.core.OwnShard(i.Key)
	}
	return ns.core.Home(i.Key)
}

// looked notes what a host holds under the key.
func (i *imported) looked(id ID, o *route.Outcome) {
	later := i.compare(id, o)
	switch {
	case o.There:
		i.held = append(i.held, id)
	case o.Other == nil:
		i.none, i.sure = true, i.sure || o.Settled
	case i.stage == comparing && i.before(o.Other):
		i.stale, i.outdated = true, true
		i.held = append(i.held, id)
	case later: // otherwise it gives way to what this node holds
		i.unlike = true
		i.seen = append(i.seen, o.Other)
		i.asLate(o.Other)
	}
}

// before reports whether the item is dated before what a record says.
func (i *imported) before(r *dbadapter.Record) bool {
	date := i.date()
	return !date.IsZero() && i.ns.DateOf(i.Key, r.Version) > dbadapter.TimestampAt(date)
}

// date is that of the item, or the one that it has had.
func (i *imported) date() time.Time { return cmp.Or(i.Time, i.dated, i.was) }

// asLate has a dated item written as of now where it has to take the place of one that was, and reports whether it does.
func (i *imported) asLate(other *dbadapter.Record) bool {
	if i.Time.IsZero() || i.foreign || !i.ns.LateBefore(i.Key, other.Version, i.Time) {
		return false
	}
	i.was = i.Time
	i.again(nil)
	return true
}

// lateBehind reports of an item whose date was declined whether its node has written what is later than that.
func (i *imported) lateBehind(own *dbadapter.Record) bool {
	return own != nil && i.Time.IsZero() && i.before(own)
}

// follows reports of an item that is written as of now whether an entry that its own would replace is later than its date, and
// not one whose author has ended: the record of that, which is later than the item, would count as seen.
func (i *imported) follows(entry *dbadapter.Record) bool {
	return entry != nil && i.Time.IsZero() && i.before(entry) && entry.Version != i.ended && !slices.Contains(i.versions, entry.Version)
}

// next says what follows for an item when the hosts of its due were asked.
func (im *shardImport) next(i *imported, need int) {
	enough := len(i.held) >= need
	switch i.stage {
	case entryDue:
		switch {
		case i.unlike && !i.searched:
			i.stage = searching
		case len(i.held) > 0 || i.unlike || i.none && i.searched:
			i.entered, i.stage = enough && !i.unlike, comparing
		case i.none && i.deletes() && !i.sure: // one host says so
			i.stage = searching
		case i.none:
			im.absent(i, i.sure)
		}
	case comparing:
		switch {
		case enough && i.entered && !i.unlike:
			i.done = true
		case len(i.held) > 0 && !i.unlike && (i.none || !i.entered) && im.waits > 0:
			i.arrives, i.stage = true, entryDue
		case len(i.held) > 0 || i.unlike || i.none:
			i.held, i.stage = nil, making
		}
	case entering, writing:
		first, second := i.order()
		switch {
		case i.record == nil:
			i.bound = i.bound || i.fresh && i.stage == first
			i.searched, i.stage = false, searching
		case i.full:
			i.done = true
		case i.stage == first && enough && i.stale && !i.fresh: // a later record, or an entry that should lead to one
			if i.done = i.outdated || first == writing; !i.done {
				i.stage = hidden
			}
		case !enough && i.behind: // as in message
			i.anew()
		case !enough:
		case i.stage == first: // from here on no error says that nothing is written
			i.bound, i.sent, i.fresh, i.held, i.stage = true, true, false, nil, second
		default:
			i.done = true
			if !i.record.Deleted {
				home, index := im.ns.core.ToldAs(i.Key)
				im.ns.follows.locator.Wrote(home, index, i.shard, im.ns.follows.now())
			}
		}
	}
}

// lookBehind sees to a dated item whose key has a later entry. Where that leads to a later record, the item is
// stale; where it leads to none, and for sure no shard has one, its author has ended in between, and
// the item is written as of now: its own entry would not stand against that one.
func (im *shardImport) lookBehind(ctx context.Context, i *imported) {
	ns := im.ns
	found, err := ns.lookUp(ctx, i.Key, true)
	switch i.held = nil; {
	case err != nil:
		i.failed(ns.node.self.id, err, false)
	case found.Record != nil && i.before(found.Record):
		i.done, i.fresh = true, i.fresh && i.made(found.Record)
	case !found.Sure:
		i.err = fmt.Errorf("%w: go on with the import in %s", found.Unsure(), node.AbsentFor)
	default:
		im.behindEntry(ctx, i)
	}
}

// behindEntry goes on with a dated item whose key has no later record for sure. It is written as of now only once the author of a
// later entry has ended: the record of that, which is later than the item's date, would lose.
func (im *shardImport) behindEntry(ctx context.Context, i *imported) {
	found, err := im.ns.lookUpIn(ctx, im.ns.core.Entries(i.Key), i.Key, true)
	entry := found.Record
	for _, r := range i.named { // of which no host that is asked now may have heard
		if entry == nil || r.Version.Compare(entry.Version) > 0 {
			entry = r
		}
	}
	own, deleted := false, false
	if entry != nil {
		_, named := directory.ShardOf(entry, im.ns.core.Rule().Shards)
		own, deleted = slices.Contains(i.versions, entry.Version), named != nil
	}
	switch {
	case err != nil:
		i.failed(im.ns.node.self.id, err, false)
		return
	case entry != nil && i.asLate(entry):
	case entry == nil || !i.before(entry): // the one that was later is gone since
		i.record = nil
	case own: // it has taken the place of the one that was later
		i.again(nil)
	case deleted: // by a later write that has come meanwhile
		i.done, i.fresh = true, false
		return
	case !im.ns.follows.byWriter.Absent(i.Key, entry.Version):
		i.err = fmt.Errorf("%w: the directory has an entry whose record may come still: go on with the import in %s", ErrUnsure, node.AbsentFor)
		return
	default:
		i.dated = cmp.Or(i.dated, i.Time, i.was)
		i.ended = entry.Version
		i.again(nil)
	}
	i.seen = slices.DeleteFunc(i.seen, i.follows) // they lead to no record, for sure
	i.stale, i.searched, i.stage = false, false, entryDue
}

// order is what is written first, and what follows: an entry before its record, and a tombstone before
// that of its entry (node.ByWriter.Offer).
func (i *imported) order() (first, second due) {
	if i.Deleted {
		return writing, entering
	}
	return entering, writing
}

// slept reports whether a record comes too late behind its entry, which counts as one whose author
// has ended by then; it is made anew.
func (im *shardImport) slept(i *imported) bool {
	if i.Deleted || im.ns.follows.now()-i.began <= node.EntryPatience {
		return false
	}
	i.anew()
	i.slow = true
	return true
}

// anew has record and entry made anew, over those that were made.
func (i *imported) anew() {
	i.remake()
	i.stage = making
}

// asksNone are the items whose records may be made: but for those that only the locator calls new, and of which this node has
// written the key meanwhile, perhaps in another shard.
func (im *shardImport) asksNone(items []*imported) []*imported {
	return slices.DeleteFunc(slices.Clone(items), func(i *imported) bool {
		if i.unasked = i.unasked && i.record == nil; !i.unasked || im.own(i) == nil {
			return false
		}
		i.unasked, i.stage = false, searching
		return true
	})
}
