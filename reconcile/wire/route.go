package wire

import (
	"github.com/syncd-io/syncd/dbadapter"
)

// The routed questions: a node that need not hold a shard asks its hosts for a record, or
// asks them to hold some. They travel as an Ask and a Reply, on streams of their own that
// carry one after the other. The Ask names the whole namespace; the question the shard.

// MaxShards is greater than the number of each shard.
const MaxShards = 4096

// The subjects of routed questions.
const (
	// SubjectRecord is the record under a key.
	SubjectRecord Subject = 4
	// SubjectHold is that the peer is to hold records.
	SubjectHold Subject = 5
)

// Routed reports whether questions about the subject travel on the streams of routed
// questions.
func (s Subject) Routed() bool {
	return s >= SubjectRecord && s <= SubjectNames
}

// ShardRow names a shard, and says by what the asker goes: an answer counts if the peer goes
// by the same.
type ShardRow struct {
	Shard uint32
	// Row is the name of the shard's row in the table of the layout.
	Row [16]byte
	// Gone is a digest of the removals and lapses that are known.
	Gone [8]byte
}

// AskRecord asks for the record under a key of a shard.
type AskRecord struct {
	ShardRow
	// Head asks for the version alone.
	Head bool
	Key  []byte
}

// Apart answers a question of any subject that names a row: the peer goes by another one, or knows of other removals
// or lapses. What it did counts for nothing; of a hold, it may have taken records.
type Apart struct{}

// RecordAnswer is what the peer holds under the key, durably.
type RecordAnswer struct {
	// Whole: the peer has all that was acknowledged by its shard's hosts, as far as it must.
	Whole bool
	// Record is in full, a tombstone too; nil: nothing is held, or the head was asked for.
	Record *dbadapter.Record
	// Head is the version that is held, where that was asked for; zero: nothing is.
	Head dbadapter.Version
}

// AskHold asks the peer to admit records of a shard, and to answer when they are durable: at
// least one, and BatchRecords at most. A record that has a writer is admitted only where the
// peer holds nothing, the very record, or what the record's writer had seen.
type AskHold struct {
	ShardRow
	// New asks it not to admit a record without a writer whose content it holds already,
	// unless what it holds is an older version. It is to tell such records apart.
	New bool
	// Batch asks it to admit all records in one transaction, or none.
	Batch bool
	// On, where it is not empty, has one for each record: the version that must be held, or
	// zero where nothing may be. A nil one is no condition. Where one does not hold, nothing is admitted.
	On []*dbadapter.Version
	// Earliest, if not 0, is the earliest date of an import that records without a writer are
	// of. The peer promises nothing that reaches it, unless it already has.
	Earliest dbadapter.Timestamp
	// Passed: the records are passed on, as hosts hold them, and may name bodies of any age.
	Passed  bool
	Records []dbadapter.Record
}

// HoldAnswer says what has become of the records.
type HoldAnswer struct {
	// Whole is as in a RecordAnswer. Where the question has conditions, a peer that is not whole compares
	// nothing, and holds nothing because of it.
	Whole bool
	// Outcomes has one for each record.
	Outcomes []HoldOutcome
}

// HoldOutcome is what has become of a record: if all fields are zero, it is held durably.
// Where the question has a Batch or conditions, nothing is held unless all outcomes are zero.
type HoldOutcome struct {
	// There: the question asks for what is New. Other, of which the version alone is given, is
	// held durably and says what the record does.
	There bool
	// Other is what the peer holds in the record's place: one of a greater version, or one that its
	// writer had not seen. It has its version, and what it replaces, alone.
	Other *dbadapter.Record
	// Declined is why it is not admitted.
	Declined Reason
}

// byRow reports whether questions about the subject name a row.
func (s Subject) byRow() bool { return s.Routed() && s != SubjectKept }

// Subject is SubjectRecord.
func (*AskRecord) Subject() Subject { return SubjectRecord }

// Subject is SubjectHold.
func (*AskHold) Subject() Subject { return SubjectHold }

// outcomes of a record; all others are reasons
const (
	outcomeHeld  = 0
	outcomeOther = 1
	outcomeThere = 0x80
)

func (r *ShardRow) fields(c *codec) {
	if uvarint(c, &r.Shard); r.Shard >= MaxShards {
		c.fail("shard %d; the last one is %d at most", r.Shard, MaxShards-1)
	}
	c.array(r.Row[:])
	c.array(r.Gone[:])
}

// host goes through the flags of a host's answer: one that is set, unlike in an Apart, whole, and what
// the answer has besides.
func (c *codec) host(whole *bool, more ...*bool) {
	same := true
	if flags := c.flags(append([]*bool{&same, whole}, more...)...); !same {
		c.fail("unknown flags %#x", flags)
	}
}

func (*Apart) answer(c *codec) {
	var none byte
	octet(c, &none)
}

func (q *AskRecord) question(c *codec) {
	q.fields(c)
	c.bool(&q.Head)
	c.key(&q.Key)
}

func (a *RecordAnswer) answer(c *codec) {
	record := a.Record != nil
	head := !record && !a.Head.IsZero()
	c.host(&a.Whole, &record, &head)
	switch {
	case record && head:
		c.fail("a record and a head of it")
	case record:
		c.pushed(made(c, &a.Record))
	case head:
		c.held(&a.Head)
	}
}

// held goes through the version of a record that is there.
func (c *codec) held(v *dbadapter.Version) {
	if c.version(v); v.IsZero() {
		c.fail("a version of zeros")
	}
}

func (q *AskHold) question(c *codec) {
	q.fields(c)
	on, earliest := len(q.On) > 0, q.Earliest != 0
	c.flags(&q.New, &q.Batch, &on, &earliest, &q.Passed)
	if (q.New || earliest) && (q.Batch || on) || q.Passed && (q.New || q.Batch || on || earliest) {
		c.fail("flags of a hold that exclude one another")
	}
	if earliest {
		if big(c, &q.Earliest); q.Earliest == 0 {
			c.fail("an earliest date of 0")
		}
	}
	c.some()
	n := 0
	list(c, &q.Records, BatchRecords, "records", func(r *dbadapter.Record) {
		if on {
			c.condition(q, n)
			n++
		}
		c.pushed(r)
	})
}

// condition goes through that of the record n.
func (c *codec) condition(q *AskHold, n int) {
	if c.reads {
		q.On = append(q.On, nil)
	}
	there := q.On[n] != nil
	if c.bool(&there); there {
		c.version(made(c, &q.On[n]))
	}
}

func (a *HoldAnswer) answer(c *codec) {
	c.host(&a.Whole)
	c.some()
	list(c, &a.Outcomes, BatchRecords, "outcomes", c.outcome)
}

func (c *codec) outcome(o *HoldOutcome) {
	kind := byte(o.Declined) // 0 is outcomeHeld
	switch {
	case o.There:
		kind = outcomeThere
	case kind == outcomeHeld && o.Other != nil:
		kind = outcomeOther
	}
	octet(c, &kind)
	switch kind {
	case outcomeHeld:
	case outcomeOther:
		c.other(made(c, &o.Other))
	case outcomeThere:
		if c.reads {
			o.There = true
		}
		c.held(&made(c, &o.Other).Version)
	default:
		if c.reads {
			o.Declined = Reason(kind)
		}
		c.known(o.Declined)
	}
}

// other goes through the version of a record, and what it replaces.
func (c *codec) other(r *dbadapter.Record) {
	flags := r.OptionalFlags() & dbadapter.FlagReplaces
	if octet(c, &flags); flags&^dbadapter.FlagReplaces != 0 {
		c.fail("unknown flags %#x", flags)
	}
	c.held(&r.Version)
	replaced := dbadapter.Record{Version: r.Version, Replaces: r.Replaces}
	if c.optional(&replaced, flags); c.reads {
		r.Replaces = replaced.Replaces
	}
}
