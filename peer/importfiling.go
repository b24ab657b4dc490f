package peer

import (
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
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
	case i.stage == comparing && !i.Time.IsZero() && i.ns.DateOf(i.Key, o.Other.Version) > dbadapter.TimestampAt(i.Time):
		i.stale = true
		i.held = append(i.held, id)
	case later: // otherwise it gives way to what this node holds
		i.unlike = true
		i.seen = append(i.seen, o.Other)
		if i.replaces(o.Other) {
			i.byItself()
		}
	}
}

// next says what follows for an item when the hosts of its due were asked.
func (im *shardImport) next(i *imported, need int) {
	enough := len(i.held) >= need
	if i.alone { // no further stage
		return
	}
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
		case i.stage == first && first == writing && enough && i.stale && !i.fresh:
			i.done = true
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
