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
	// Apart and Whole are as in a RecordAnswer. A page comes from a whole host alone.
	Apart, Whole bool
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

// flags of a ChangesAnswer, besides routeSame and routeWhole
const (
	changesExpired = 4 << iota
	changesMore
)

// flags of a Change
const (
	changeCoalesced = 1 << iota
	changeRecord
)

func (q *AskChanges) appendQuestion(b []byte) []byte {
	return appendBytes(appendBytes(q.appendTo(b), q.Cursor), q.Prefix)
}

func (a *ChangesAnswer) appendAnswer(b []byte) []byte {
	flags := flagsOf(a.Apart, a.Whole)
	if a.Expired {
		flags |= changesExpired
	}
	if a.More {
		flags |= changesMore
	}
	if b = append(b, flags); !a.Whole || a.Expired {
		return b
	}
	b = appendBytes(b, a.Next)
	for i := range a.Changes {
		c := &a.Changes[i]
		flags := byte(0)
		if c.Coalesced {
			flags |= changeCoalesced
		}
		if c.Record == nil {
			b = appendBytes(append(b, flags), c.Key)
		} else {
			b = AppendPushed(append(b, flags|changeRecord), c.Record)
		}
	}
	return b
}

func (p *parser) askChanges() *AskChanges {
	return &AskChanges{ShardRow: p.shardRow(), Cursor: p.bytes(MaxCursor, "a cursor"), Prefix: p.bytes(dbadapter.MaxKey, "a prefix")}
}

func (p *parser) changesAnswer() *ChangesAnswer {
	flags, apart := p.answerFlags(changesExpired | changesMore)
	a := &ChangesAnswer{Apart: apart, Whole: flags&routeWhole != 0, Expired: flags&changesExpired != 0, More: flags&changesMore != 0}
	switch {
	case (a.Expired || a.More) && !a.Whole, a.Expired && a.More:
		p.fail("unknown flags %#x", flags)
		return a
	case !a.Whole || a.Expired:
		return a
	}
	if a.Next = p.bytes(MaxCursor, "a cursor"); p.err == nil && len(a.Next) == 0 {
		p.fail("a page without a cursor")
	}
	for len(p.rest) > 0 && p.err == nil {
		if len(a.Changes) == BatchRecords {
			p.fail("more than %d changes in one message", BatchRecords)
			break
		}
		a.Changes = append(a.Changes, p.change())
	}
	return a
}

func (p *parser) change() (c Change) {
	flags := p.byte()
	c.Coalesced = flags&changeCoalesced != 0
	switch {
	case flags > changeCoalesced|changeRecord:
		p.fail("unknown flags %#x", flags)
	case flags&changeRecord != 0:
		r := p.pushed()
		c.Record = &r
	default:
		c.Key = p.bytes(dbadapter.MaxKey, "a key")
	}
	return c
}
