package wire

import (
	"encoding/binary"

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

// RecordAnswer is what the peer holds under the key, durably.
type RecordAnswer struct {
	// Apart: the peer goes by another row, or knows of other removals or lapses. There is no answer then.
	Apart bool
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
	// Apart is as in a RecordAnswer: it holds none of the records because of the question, and
	// Outcomes is empty.
	Apart bool
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

// Subject is SubjectRecord; so is the next one.
func (*AskRecord) Subject() Subject { return SubjectRecord }

// Subject is SubjectRecord.
func (*RecordAnswer) Subject() Subject { return SubjectRecord }

// Subject is SubjectHold; so is the next one.
func (*AskHold) Subject() Subject { return SubjectHold }

// Subject is SubjectHold.
func (*HoldAnswer) Subject() Subject { return SubjectHold }

// flags of the answers; 0: the peer goes by another row
const (
	routeSame   = 1 << iota // the peer goes by the asker's row
	routeWhole              // it is whole
	routeRecord             // a record in full; of RecordAnswer, so is the next one
	routeHead               // a version
)

// flags of AskHold
const (
	routeNew = 1 << iota
	routeBatch
	routeOn // conditions follow
	routeEarliest
	routePassed
)

// outcomes of a record; all others are reasons
const (
	outcomeHeld  = 0
	outcomeOther = 1
	outcomeThere = 0x80
)

func (r *ShardRow) appendTo(b []byte) []byte {
	b = append(appendUvarint(b, uint64(r.Shard)), r.Row[:]...)
	return append(b, r.Gone[:]...)
}

func (p *parser) shardRow() (r ShardRow) {
	r.Shard = p.shard()
	copy(r.Row[:], p.take(uint64(len(r.Row))))
	copy(r.Gone[:], p.take(uint64(len(r.Gone))))
	return r
}

func flagsOf(apart, whole bool) byte {
	switch {
	case apart:
		return 0
	case whole:
		return routeSame | routeWhole
	}
	return routeSame
}

func (q *AskRecord) appendQuestion(b []byte) []byte {
	head := byte(0)
	if q.Head {
		head = 1
	}
	return appendBytes(append(q.appendTo(b), head), q.Key)
}

func (a *RecordAnswer) appendAnswer(b []byte) []byte {
	flags := flagsOf(a.Apart, a.Whole)
	switch {
	case flags == 0:
		return append(b, flags)
	case a.Record != nil:
		return AppendPushed(append(b, flags|routeRecord), a.Record)
	case !a.Head.IsZero():
		b, _ = a.Head.AppendBinary(append(b, flags|routeHead)) // never fails
		return b
	}
	return append(b, flags)
}

func (q *AskHold) appendQuestion(b []byte) []byte {
	flags := byte(0)
	if q.New {
		flags |= routeNew
	}
	if q.Batch {
		flags |= routeBatch
	}
	if len(q.On) > 0 {
		flags |= routeOn
	}
	if q.Earliest != 0 {
		flags |= routeEarliest
	}
	if q.Passed {
		flags |= routePassed
	}
	b = append(q.appendTo(b), flags)
	if q.Earliest != 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(q.Earliest))
	}
	for i := range q.Records {
		if len(q.On) > 0 {
			if on := q.On[i]; on == nil {
				b = append(b, 0)
			} else {
				b, _ = on.AppendBinary(append(b, 1)) // never fails
			}
		}
		b = AppendPushed(b, &q.Records[i])
	}
	return b
}

func (a *HoldAnswer) appendAnswer(b []byte) []byte {
	if b = append(b, flagsOf(a.Apart, a.Whole)); a.Apart {
		return b
	}
	for _, o := range a.Outcomes {
		switch {
		case o.There:
			b, _ = o.Other.Version.AppendBinary(append(b, outcomeThere)) // never fails
		case o.Declined != 0:
			b = append(b, byte(o.Declined))
		case o.Other == nil:
			b = append(b, outcomeHeld)
		default:
			b, _ = o.Other.Version.AppendBinary(append(b, outcomeOther, o.Other.OptionalFlags()&dbadapter.FlagReplaces)) // never fails
			b = (&dbadapter.Record{Replaces: o.Other.Replaces}).AppendOptional(b)
		}
	}
	return b
}

func (p *parser) shard() uint32 {
	n := p.uvarint()
	if n >= MaxShards {
		p.fail("shard %d; the last one is %d at most", n, MaxShards-1)
	}
	return uint32(n)
}

func (p *parser) askRecord() *AskRecord {
	q := &AskRecord{ShardRow: p.shardRow(), Head: p.bool()}
	q.Key = p.key()
	return q
}

// answerFlags reads the flags of an answer, of which some may be there besides routeSame and
// routeWhole.
func (p *parser) answerFlags(also byte) (flags byte, apart bool) {
	flags = p.byte()
	if flags == 0 {
		return 0, true
	}
	if flags&^(routeSame|routeWhole|also) != 0 || flags&routeSame == 0 {
		p.fail("unknown flags %#x", flags)
	}
	return flags, false
}

func (p *parser) recordAnswer() *RecordAnswer {
	flags, apart := p.answerFlags(routeRecord | routeHead)
	a := &RecordAnswer{Apart: apart, Whole: flags&routeWhole != 0}
	switch {
	case flags&routeRecord != 0 && flags&routeHead != 0:
		p.fail("unknown flags %#x", flags)
	case flags&routeRecord != 0:
		r := p.pushed()
		a.Record = &r
	case flags&routeHead != 0:
		if a.Head = p.version(); p.err == nil && a.Head.IsZero() {
			p.fail("a version of zeros")
		}
	}
	return a
}

func (p *parser) version() (v dbadapter.Version) {
	if b := p.take(dbadapter.VersionSize); p.err == nil {
		_ = v.UnmarshalBinary(b) // it has its size
	}
	return v
}

func (p *parser) askHold() *AskHold {
	q := &AskHold{ShardRow: p.shardRow()}
	flags := p.byte()
	if flags >= routePassed<<1 || flags&(routeNew|routeEarliest) != 0 && flags&(routeBatch|routeOn) != 0 || flags&routePassed != 0 && flags != routePassed {
		p.fail("unknown flags %#x", flags)
	}
	q.New, q.Batch, q.Passed = flags&routeNew != 0, flags&routeBatch != 0, flags&routePassed != 0
	if flags&routeEarliest != 0 {
		if b := p.take(8); p.err == nil {
			q.Earliest = dbadapter.Timestamp(binary.BigEndian.Uint64(b))
		}
		if p.err == nil && q.Earliest == 0 {
			p.fail("an earliest date of 0")
		}
	}
	p.some()
	for len(p.rest) > 0 && p.err == nil {
		if len(q.Records) == BatchRecords {
			p.fail("more than %d records in one message", BatchRecords)
			break
		}
		if flags&routeOn != 0 {
			var on *dbadapter.Version
			if p.bool() {
				v := p.version()
				on = &v
			}
			q.On = append(q.On, on)
		}
		q.Records = append(q.Records, p.pushed())
	}
	return q
}

func (p *parser) holdAnswer() *HoldAnswer {
	flags, apart := p.answerFlags(0)
	a := &HoldAnswer{Apart: apart, Whole: flags&routeWhole != 0}
	if apart {
		return a
	}
	p.some()
	for len(p.rest) > 0 && p.err == nil {
		if len(a.Outcomes) == BatchRecords {
			p.fail("more than %d outcomes in one message", BatchRecords)
			break
		}
		a.Outcomes = append(a.Outcomes, p.outcome())
	}
	return a
}

func (p *parser) outcome() (o HoldOutcome) {
	switch p.rest[0] {
	case outcomeHeld:
		p.rest = p.rest[1:]
	case outcomeOther:
		p.rest = p.rest[1:]
		o.Other = p.other()
	case outcomeThere:
		p.rest = p.rest[1:]
		o.There, o.Other = true, &dbadapter.Record{Version: p.version()}
		if p.err == nil && o.Other.Version.IsZero() {
			p.fail("a version of zeros")
		}
	default:
		o.Declined = p.reason()
	}
	return o
}

// other reads the version of a record, and what it replaces.
func (p *parser) other() *dbadapter.Record {
	r := &dbadapter.Record{}
	flags := p.byte()
	if flags&^dbadapter.FlagReplaces != 0 {
		p.fail("unknown flags %#x", flags)
	}
	r.Version = p.version()
	if p.err == nil {
		var err error
		if p.rest, err = r.ReadOptional(flags, p.rest); err != nil {
			p.fail("%w", err)
		} else if r.Version.IsZero() {
			p.fail("a version of zeros")
		}
	}
	return r
}

// pushed reads a record in full, as in a push.
func (p *parser) pushed() dbadapter.Record {
	r, _ := p.head(flagsPushed)
	if !r.Deleted {
		r.Value = p.bytes(dbadapter.MaxValue, "a value")
	}
	return r
}
