package wire

import "github.com/syncd-io/syncd/dbadapter"

// SubjectKept is what the peer keeps of records that have left its sets. It is a routed
// question.
const SubjectKept Subject = 9

// AskKept asks for entries of the peer's kept logs whose numbers are greater than After, in
// their order: a page. Nothing is kept for it.
type AskKept struct {
	// Aside: of what was set aside; otherwise of conflicts.
	Aside bool
	After uint64
}

// KeptAnswer is a page.
type KeptAnswer struct {
	// More: further entries follow behind the last one.
	More bool
	// Entries are BatchRecords at most.
	Entries []KeptEntry
}

// KeptEntry is an entry without the value.
type KeptEntry struct {
	Seq uint64
	// At is when the record left the set, by the peer's clock in milliseconds, and Size that of
	// its value.
	At, Size uint64
	Record   dbadapter.Record
	By       dbadapter.Version
}

// Subject is SubjectKept; so is the next one.
func (*AskKept) Subject() Subject { return SubjectKept }

// Subject is SubjectKept.
func (*KeptAnswer) Subject() Subject { return SubjectKept }

func (q *AskKept) question(c *codec) {
	c.bool(&q.Aside)
	uvarint(c, &q.After)
}

func (a *KeptAnswer) answer(c *codec) {
	if c.bool(&a.More); a.More {
		c.some()
	}
	list(c, &a.Entries, BatchRecords, "entries", func(e *KeptEntry) { e.fields(c) })
}

// AppendKept appends an entry as it travels.
func AppendKept(b []byte, e *KeptEntry) []byte { return written(b, e.fields) }

func (e *KeptEntry) fields(c *codec) {
	uvarint(c, &e.Seq)
	uvarint(c, &e.At)
	uvarint(c, &e.Size)
	c.head(&e.Record, nil, nil)
	c.version(&e.By)
}
