package wire

import (
	"bytes"

	"github.com/syncd-io/syncd/dbadapter"
)

// The messages of a question: one Ask, and one Reply or Refuse. They travel on streams
// of their own, and in no sync.
const (
	KindAsk   Kind = 19
	KindReply Kind = 20
)

// MaxPatience is the longest time, in milliseconds, that an Ask may grant for its answer.
// The asker asks again after it, and so sees that the peer is still there.
const MaxPatience = 30_000

// MaxRest is the longest time, in milliseconds, for which a KeyAnswer may say that its
// record rests: a hundred years.
const MaxRest = 100 * 365 * 24 * 3600 * 1000

// Ask asks a peer about a namespace. The asker proves that it knows the secret, as in a
// Hello.
type Ask struct {
	Version   byte // the protocol's
	Namespace dbadapter.NamespaceID
	Nonce     Nonce
	Proof     Proof
	Greeting  Greeting
	// Patience is how long, in milliseconds, the peer may wait until what is asked for
	// has come about. 0 asks for an answer at once.
	Patience uint64
	Question Question
}

// Reply answers an Ask, with a proof as in a Welcome.
type Reply struct {
	Nonce    Nonce
	Proof    Proof
	Greeting Greeting
	Subject  Subject // that of the question
	Answer   Answering
}

// Subject is what a question is about.
type Subject byte

// The subjects.
const (
	// SubjectKey is what the peer holds under a key.
	SubjectKey Subject = 1
	// SubjectSet is the set of records that the peer holds.
	SubjectSet Subject = 2
	// SubjectStatus is how the peer is.
	SubjectStatus Subject = 3
)

// Question is one of the structs below.
type Question interface {
	// Subject is the byte that tells the questions apart.
	Subject() Subject
	question(c *codec)
}

// Answering is the answer to a Question of the same subject.
type Answering interface {
	answer(c *codec)
}

// AskKey asks what the peer holds under a key, and whether it would take what the asker
// holds there. With Patience it asks to be answered once the peer holds that version or
// a greater one.
type AskKey struct {
	// Held is the asker's record without its value; where it holds none, the key alone.
	Held dbadapter.Record
	// Digest is the record's; zero where the asker holds none.
	Digest dbadapter.Digest
}

// KeyAnswer is what the peer holds under the key, durably.
type KeyAnswer struct {
	// Held is the peer's record without its value, and Digest the record's; zero if it
	// holds none.
	Held   dbadapter.Record
	Digest dbadapter.Digest
	// Declines is why the peer declines what the asker holds; 0 if it does not.
	Declines Reason
	// Declined is why the asker has declined Held in an earlier sync, if the peer does not
	// offer it again for Rest milliseconds. It is 0 if the peer offers it with the next sync.
	Declined Reason
	Rest     uint64
}

// AskSet asks what the peer holds. With Patience it asks to be answered once the peer
// holds as many records of the same digest.
type AskSet struct{ Sum dbadapter.Sum }

// SetAnswer is what the peer holds, durably.
type SetAnswer struct{ Sum dbadapter.Sum }

// Kind is the byte that tells the messages apart.
func (*Ask) Kind() Kind   { return KindAsk }
func (*Reply) Kind() Kind { return KindReply }

// Subject is SubjectKey.
func (*AskKey) Subject() Subject { return SubjectKey }

// Subject is SubjectSet.
func (*AskSet) Subject() Subject { return SubjectSet }

// subjects makes the question and the answer of each subject.
var subjects = [...]struct {
	question func() Question
	answer   func() Answering
}{
	SubjectKey:     {asked[AskKey], answered[KeyAnswer]},
	SubjectSet:     {asked[AskSet], answered[SetAnswer]},
	SubjectStatus:  {asked[AskStatus], answered[StatusAnswer]},
	SubjectRecord:  {asked[AskRecord], answered[RecordAnswer]},
	SubjectHold:    {asked[AskHold], answered[HoldAnswer]},
	SubjectFeed:    {asked[AskFeed], answered[FeedAnswer]},
	SubjectScan:    {asked[AskScan], answered[ScanAnswer]},
	SubjectChanges: {asked[AskChanges], answered[ChangesAnswer]},
	SubjectKept:    {asked[AskKept], answered[KeptAnswer]},
	SubjectBody:    {asked[AskBody], answered[BodyAnswer]},
	SubjectNames:   {asked[AskNames], answered[NamesAnswer]},
}

func asked[T any, P interface {
	*T
	Question
}]() Question {
	return P(new(T))
}

func answered[T any, P interface {
	*T
	Answering
}]() Answering {
	return P(new(T))
}

// subject goes through the subject of an Ask or a Reply, and reports whether it is known.
func (c *codec) subject(s *Subject) bool {
	octet(c, s)
	if *s == 0 || int(*s) >= len(subjects) {
		c.fail("unknown subject %d", *s)
		return false
	}
	return true
}

// fields reads no further than a version that is not ours, and writes no further.
func (m *Ask) fields(c *codec) {
	if octet(c, &m.Version); c.foreign(m.Version) || m.Version != Version {
		return
	}
	c.array(m.Namespace[:])
	c.array(m.Nonce[:])
	c.array(m.Proof[:])
	m.Greeting.fields(c)
	if uvarint(c, &m.Patience); m.Patience > MaxPatience {
		c.fail("a patience of %d ms; at most %d are allowed", m.Patience, MaxPatience)
	}
	var subject Subject
	if !c.reads {
		subject = m.Question.Subject()
	}
	if !c.subject(&subject) {
		return
	}
	if c.reads {
		m.Question = subjects[subject].question()
	}
	if m.Patience != 0 && subject.Routed() {
		c.fail("a routed question with a patience of %d ms", m.Patience)
	}
	m.Question.question(c)
}

func (m *Reply) fields(c *codec) {
	c.array(m.Nonce[:])
	c.array(m.Proof[:])
	m.Greeting.fields(c)
	if !c.subject(&m.Subject) {
		return
	}
	if c.reads {
		m.Answer = subjects[m.Subject].answer()
		if m.Subject.byRow() && bytes.Equal(c.rest, []byte{0}) {
			m.Answer = &Apart{}
		}
	}
	m.Answer.answer(c)
}

func (q *AskKey) question(c *codec) { c.keyed(&q.Held, &q.Digest) }

func (a *KeyAnswer) answer(c *codec) {
	if c.perhaps(&a.Declines); c.over(len(a.Held.Key) == 0) {
		return
	}
	if c.keyed(&a.Held, &a.Digest); a.Held.Version.IsZero() {
		c.fail("a key that is held without a version")
	}
	if c.perhaps(&a.Declined); a.Declined == 0 {
		return
	}
	if uvarint(c, &a.Rest); a.Rest > MaxRest {
		c.fail("a rest of %d ms; at most %d are allowed", a.Rest, uint64(MaxRest))
	}
}

// keyed goes through a record's head and digest, or a key alone.
func (c *codec) keyed(r *dbadapter.Record, digest *dbadapter.Digest) {
	switch flags := c.head(r, nil, nil); {
	case !r.Version.IsZero():
		c.digest(digest)
	case flags != 0:
		c.fail("flags %#x of a key that is not held", flags)
	}
}

func (q *AskSet) question(c *codec)  { c.sum(&q.Sum) }
func (a *SetAnswer) answer(c *codec) { c.sum(&a.Sum) }

// SubjectScan is a page of a shard's records, by key. It is a routed question.
const SubjectScan Subject = 7

// AskScan asks for the records of a shard whose keys begin with Prefix and are greater than
// After, the least keys first: a page. The last key of a page is what the next one is
// asked for behind, of this host or of another one. So nothing is kept for a scan.
type AskScan struct {
	ShardRow
	// Most is how many bytes the page's records may take, as they travel: BatchBytes at
	// most. One record comes in any case.
	Most          uint32
	Prefix, After []byte
}

// ScanAnswer is a page.
type ScanAnswer struct {
	// Whole is as in a RecordAnswer. A page is of a whole host alone.
	Whole bool
	// More: further records follow behind the last one.
	More bool
	// Records are in full, tombstones and what has expired too, by key: BatchRecords at most.
	Records []dbadapter.Record
}

// Subject is SubjectScan.
func (*AskScan) Subject() Subject { return SubjectScan }

func (q *AskScan) question(c *codec) {
	q.fields(c)
	if uvarint(c, &q.Most); q.Most > BatchBytes {
		c.fail("a page of %d bytes; at most %d are allowed", q.Most, BatchBytes)
	}
	field(c, &q.Prefix, dbadapter.MaxKey, "a prefix")
	field(c, &q.After, dbadapter.MaxKey, "a key")
}

func (a *ScanAnswer) answer(c *codec) {
	c.host(&a.Whole, &a.More)
	if a.More && !a.Whole {
		c.fail("more of a page that there is not")
	}
	if !a.Whole {
		return
	}
	if a.More {
		c.some()
	}
	list(c, &a.Records, BatchRecords, "records", c.pushed)
}

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

// Subject is SubjectChanges.
func (*AskChanges) Subject() Subject { return SubjectChanges }

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

// Subject is SubjectKept.
func (*AskKept) Subject() Subject { return SubjectKept }

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

// MaxProgram is the most bytes of the version of a program.
const MaxProgram = 64

// AskStatus asks how the peer is. It answers at once.
type AskStatus struct{}

// StatusAnswer is how the peer is, with a namespace and its disk.
type StatusAnswer struct {
	// Sum is of what it holds, durably, and Newest the greatest clock that it has ever held.
	Sum    dbadapter.Sum
	Newest dbadapter.Timestamp
	// Damaged: it has met damage to its store, and has not found it healed.
	Damaged bool
	// Unable are the states in which it cannot do its work, a bit each; 0: none.
	Unable byte
	// Program is the version of its program, in UTF-8.
	Program string
	// Disk, if not nil, is that of its store.
	Disk *Disk
	// Proved, if not nil, is the last sync of everything that proved its records equal to
	// another member's.
	Proved *Proved
}

// Disk is what files take, in bytes, and what is free.
type Disk struct{ Taken, Free uint64 }

// Proved is a sync that proved two members equal.
type Proved struct {
	With []byte // the other member's peer id, in binary
	At   uint64 // Unix milliseconds, by the clock of the one that tells it
	// Differences is how many that sync had found.
	Differences uint64
}

// Subject is SubjectStatus.
func (*AskStatus) Subject() Subject { return SubjectStatus }

func (*AskStatus) question(*codec) {}

func (a *StatusAnswer) answer(c *codec) {
	disk, proved, unable := a.Disk != nil, a.Proved != nil, a.Unable != 0
	c.flags(&a.Damaged, &disk, &proved, &unable)
	c.sum(&a.Sum)
	big(c, &a.Newest)
	const program = "a version of a program"
	c.text(&a.Program, c.length(len(a.Program), MaxProgram, program), program)
	if disk {
		d := made(c, &a.Disk)
		uvarint(c, &d.Taken)
		uvarint(c, &d.Free)
	}
	if proved {
		p := made(c, &a.Proved)
		if field(c, &p.With, MaxOrigin, "a peer id"); len(p.With) == 0 {
			c.fail("a proof with no member")
		}
		uvarint(c, &p.At)
		uvarint(c, &p.Differences)
	}
	if unable {
		if octet(c, &a.Unable); a.Unable == 0 {
			c.fail("no state is spelt out")
		}
	}
}

// The routed questions about values that are bodies (package bodies).
const (
	// SubjectBody is a key's record together with its value.
	SubjectBody Subject = 10
	// SubjectNames is which bodies a peer's records name.
	SubjectNames Subject = 11
)

// AskBody asks a host for a key's record, as far as it knows it in the shard. It asks for the
// body that the record names, too, if that is in the shard.
type AskBody struct {
	ShardRow
	Key []byte
}

// BodyAnswer is what the host has.
type BodyAnswer struct {
	Whole bool // as in a RecordAnswer
	// Record is what the shard holds under the key, or else the one that the host was given as a hint; nil: neither.
	Record *dbadapter.Record
	// Value is that of the body.
	Value []byte
}

// AskNames asks a member, host or not, which bodies its records of a shard name, and its kept log of that.
type AskNames struct {
	ShardRow
	// Names are at least one, and BatchRecords at most.
	Names []BodyName
}

// BodyName names the body of a key's value.
type BodyName struct {
	Salt [16]byte
	Key  []byte
}

// NamesAnswer says of each body, in order, whether a record names it.
type NamesAnswer struct{ Named []bool }

// Subject is SubjectBody.
func (*AskBody) Subject() Subject { return SubjectBody }

// Subject is SubjectNames.
func (*AskNames) Subject() Subject { return SubjectNames }

func (q *AskBody) question(c *codec) {
	q.fields(c)
	c.key(&q.Key)
}

func (a *BodyAnswer) answer(c *codec) {
	record := a.Record != nil
	if c.host(&a.Whole, &record); !record {
		return
	}
	c.pushed(made(c, &a.Record))
	field(c, &a.Value, dbadapter.MaxValue, "a value")
}

func (q *AskNames) question(c *codec) {
	q.fields(c)
	c.some()
	list(c, &q.Names, BatchRecords, "names", func(n *BodyName) {
		c.array(n.Salt[:])
		c.key(&n.Key)
	})
}

func (a *NamesAnswer) answer(c *codec) {
	c.host(nil)
	c.some()
	list(c, &a.Named, BatchRecords, "answers", c.bool)
}

// The feed of a locator travels as questions and answers about its own messages, on the
// streams of routed questions. Who may ask, and what proves the answer, is the same.

// SubjectFeed is that of the feed.
const SubjectFeed Subject = 6

// MaxFeed is the greatest message of the feed in bytes.
const MaxFeed = 256 << 10

// AskFeed is a poll or a take of the feed, as package locator writes it.
type AskFeed struct{ Message []byte }

// FeedAnswer is the answer to it, the news or a page.
type FeedAnswer struct{ Message []byte }

// Subject is SubjectFeed.
func (*AskFeed) Subject() Subject { return SubjectFeed }

func (q *AskFeed) question(c *codec) { orNone(c, &q.Message, MaxFeed, "a question about the feed") }
func (a *FeedAnswer) answer(c *codec) {
	orNone(c, &a.Message, MaxFeed, "an answer about the feed")
}
