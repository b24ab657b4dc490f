package wire

import "github.com/syncd-io/syncd/dbadapter"

// SubjectChanges is what a watch of a shard has to tell. It is a routed question.
const SubjectChanges Subject = 8

// MaxCursor is the most bytes of the cursor of a watch of one shard: log, number and key.
const MaxCursor = 16 + 1 + 20 + 1 + (dbadapter.MaxKey*8+5)/6

// AskChanges asks for what has become of the keys of a shard that begin with Prefix, behind a
// cursor of the peer's. An empty cursor asks for the cursor of now. "start" asks for what is
// held first, tombstones and what has expired, too.
type AskChanges struct {
	ShardRow
	Cursor, Prefix []byte
}

// ChangesAnswer is a page of a watch.
type ChangesAnswer struct {
	// Whole is as in a RecordAnswer. A page is of a whole host alone.
	Whole bool
	// Expired: the cursor is none of the peer's, or too old. There is no page then.
	Expired bool
	// More: there is more to be told at once.
	More bool
	// Next is the cursor behind the page.
	Next []byte
	// Changes are at most BatchRecords.
	Changes []Change
}

// Change is what a watch tells.
type Change struct {
	// Coalesced: other changes of the key may have been passed over.
	Coalesced bool
	// Record is what the key holds, a tombstone, too; nil: nothing any more.
	Record *dbadapter.Record
	// Key is that of a key which holds nothing any more. Where it is empty, and Record nil,
	// all that was held has been told.
	Key []byte
}

// Subject is SubjectChanges; so is the next one.
func (*AskChanges) Subject() Subject { return SubjectChanges }

// Subject is SubjectChanges.
func (*ChangesAnswer) Subject() Subject { return SubjectChanges }

func (q *AskChanges) question(c *codec) {
	q.fields(c)
	field(c, &q.Cursor, MaxCursor, "a cursor")
	field(c, &q.Prefix, dbadapter.MaxKey, "a prefix")
}

func (a *ChangesAnswer) answer(c *codec) {
	c.host(&a.Whole, &a.Expired, &a.More)
	if (a.Expired || a.More) && !a.Whole || a.Expired && a.More {
		c.fail("unknown flags: expired %v, more %v, whole %v", a.Expired, a.More, a.Whole)
	}
	if !a.Whole || a.Expired {
		return
	}
	if field(c, &a.Next, MaxCursor, "a cursor"); len(a.Next) == 0 {
		c.fail("a page without a cursor")
	}
	list(c, &a.Changes, BatchRecords, "changes", func(change *Change) {
		record := change.Record != nil
		if c.flags(&change.Coalesced, &record); record {
			c.pushed(made(c, &change.Record))
		} else {
			field(c, &change.Key, dbadapter.MaxKey, "a key")
		}
	})
}
