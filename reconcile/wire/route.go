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
	return s == SubjectRecord || s == SubjectHold || s == SubjectScan || s == SubjectFeed || s == SubjectChanges
}

// AskRecord asks for the record under a key of a shard. A namespace that is one shard has
// shard 0.
type AskRecord struct {
	Shard uint32
	Key   []byte
}

// Elsewhere says by which layout a node is no host of the shard: its epoch and its table.
// Epoch 0: the node knows no layout, and Table is zero.
type Elsewhere struct {
	Epoch uint64
	Table [32]byte
}

// RecordAnswer is what the peer holds under the key, durably.
type RecordAnswer struct {
	// Elsewhere is set exactly if the peer is no host of the shard. It may hold a record
	// all the same.
	Elsewhere *Elsewhere
	// Holds, only with Elsewhere: the peer holds the shard still, as a host of before.
	Holds bool
	// Settled: the peer is a host that was found equal with one that held the shard before
	// it, so that what it does not hold is not there.
	Settled bool
	// Current, only with Settled: it was found equal with each other member that may hold the
	// shard, a few seconds ago.
	Current bool
	// Record is in full, a tombstone too; nil: nothing is held.
	Record *dbadapter.Record
}

// AskHold asks the peer to admit records of a shard, and to answer when they are durable:
// at least one, and BatchRecords at most.
type AskHold struct {
	Shard uint32
	// Seen asks it to admit a record only if it holds nothing under the key, or the very
	// record, or what the record's writer had seen: what cannot become a conflict.
	Seen bool
	// Condition, with Seen alone: the record rests on a condition, and counts as held only where it has taken the place of
	// nothing that it had not seen.
	Condition bool
	// On, with Condition alone, is the version that the record rests on; it is zero if the key must hold no record. The peer
	// takes a later version without a writer for one that the record's writer has not seen, as no record can name it.
	On dbadapter.Version
	// New asks it not to admit a record whose content it holds already: a record without a
	// writer, unless what it holds is an older version; and to tell such ones apart.
	New bool
	// Look, without the others, asks it to admit none of them, and to say what is there: There, or
	// an Other of whatever version, or neither.
	Look    bool
	Records []dbadapter.Record
}

// HoldAnswer says what has become of the records.
type HoldAnswer struct {
	// Elsewhere is set exactly if the peer is no host of the shard. It holds none of them
	// because of the question then, and Outcomes is empty.
	Elsewhere *Elsewhere
	// Settled is as in a RecordAnswer.
	Settled bool
	// Outcomes has one for each record.
	Outcomes []HoldOutcome
}

// HoldOutcome is what has become of a record: if all fields are zero, it is held durably, or, where
// the question asks to Look, nothing is held in its place.
type HoldOutcome struct {
	// There: the question asks for what is New, or to Look, and what the record says is held
	// durably, by this or another version.
	There bool
	// Other is what the peer holds in the record's place: one of a greater version, or,
	// where the question asks so, one that its writer had not seen. It has its version, and
	// what it replaces, alone.
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

// flags of the answers
const (
	routeHost    = 1 << iota // the peer is a host of the shard
	routeSettled             // only with routeHost
	routeRecord              // of RecordAnswer; so is the next one
	routeCurrent             // only with routeSettled
	routeHolds               // only without routeHost
)

// flags of AskHold
const (
	routeSeen = 1 << iota
	routeNew
	routeLook      // alone
	routeCondition // only with routeSeen, and without the others
)

// outcomes of a record; all others are reasons
const (
	outcomeHeld  = 0
	outcomeOther = 1
	outcomeThere = 0x80
)

func (q *AskRecord) appendQuestion(b []byte) []byte {
	return appendBytes(appendUvarint(b, uint64(q.Shard)), q.Key)
}

func (a *RecordAnswer) appendAnswer(b []byte) []byte {
	flags := byte(0)
	if a.Elsewhere == nil {
		flags |= routeHost
	}
	if a.Settled {
		flags |= routeSettled
	}
	if a.Current {
		flags |= routeCurrent
	}
	if a.Holds {
		flags |= routeHolds
	}
	if a.Record != nil {
		flags |= routeRecord
	}
	b = a.Elsewhere.appendTo(append(b, flags))
	if a.Record == nil {
		return b
	}
	return AppendPushed(b, a.Record)
}

// appendTo appends nothing for nil.
func (e *Elsewhere) appendTo(b []byte) []byte {
	if e == nil {
		return b
	}
	if b = appendUvarint(b, e.Epoch); e.Epoch == 0 {
		return b
	}
	return append(b, e.Table[:]...)
}

func (q *AskHold) appendQuestion(b []byte) []byte {
	flags := byte(0)
	if q.Seen {
		flags |= routeSeen
	}
	if q.New {
		flags |= routeNew
	}
	if q.Look {
		flags |= routeLook
	}
	if q.Condition {
		flags |= routeCondition
	}
	b = append(appendUvarint(b, uint64(q.Shard)), flags)
	if q.Condition {
		b, _ = q.On.AppendBinary(b)
	}
	for i := range q.Records {
		b = AppendPushed(b, &q.Records[i])
	}
	return b
}

func (a *HoldAnswer) appendAnswer(b []byte) []byte {
	if a.Elsewhere != nil {
		return a.Elsewhere.appendTo(append(b, 0))
	}
	flags := byte(routeHost)
	if a.Settled {
		flags |= routeSettled
	}
	b = append(b, flags)
	for _, o := range a.Outcomes {
		switch {
		case o.There:
			b = append(b, outcomeThere)
		case o.Declined != 0:
			b = append(b, byte(o.Declined))
		case o.Other == nil:
			b = append(b, outcomeHeld)
		default:
			flags := o.Other.OptionalFlags() & dbadapter.FlagReplaces
			b, _ = o.Other.Version.AppendBinary(append(b, outcomeOther, flags)) // never fails
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
	q := &AskRecord{Shard: p.shard()}
	q.Key = p.key()
	return q
}

func (p *parser) recordAnswer() *RecordAnswer {
	flags := p.byte()
	if flags >= routeHolds<<1 || flags&(routeHost|routeSettled) == routeSettled || flags&(routeSettled|routeCurrent) == routeCurrent ||
		flags&(routeHost|routeHolds) == routeHost|routeHolds || flags&(routeHost|routeHolds|routeRecord) == routeRecord {
		p.fail("unknown flags %#x", flags)
	}
	a := &RecordAnswer{Settled: flags&routeSettled != 0, Current: flags&routeCurrent != 0, Holds: flags&routeHolds != 0}
	if flags&routeHost == 0 {
		a.Elsewhere = p.elsewhere()
	}
	if flags&routeRecord != 0 {
		r := p.pushed()
		a.Record = &r
	}
	return a
}

func (p *parser) elsewhere() *Elsewhere {
	e := &Elsewhere{Epoch: p.uvarint()}
	if e.Epoch != 0 {
		copy(e.Table[:], p.take(uint64(len(e.Table))))
	}
	return e
}

func (p *parser) askHold() *AskHold {
	q := &AskHold{Shard: p.shard()}
	flags := p.byte()
	if flags > routeLook && flags != routeSeen|routeCondition {
		p.fail("unknown flags %#x", flags)
	}
	q.Seen, q.New, q.Look, q.Condition = flags&routeSeen != 0, flags&routeNew != 0, flags == routeLook, flags&routeCondition != 0
	if q.Condition {
		if b := p.take(dbadapter.VersionSize); p.err == nil {
			_ = q.On.UnmarshalBinary(b) // of as many bytes
		}
	}
	p.some()
	for len(p.rest) > 0 {
		if len(q.Records) == BatchRecords {
			p.fail("more than %d records in one message", BatchRecords)
			break
		}
		q.Records = append(q.Records, p.pushed())
	}
	if q.Condition && len(q.Records) > 1 {
		p.fail("%d records on one condition", len(q.Records))
	}
	return q
}

func (p *parser) holdAnswer() *HoldAnswer {
	a := &HoldAnswer{}
	switch flags := p.byte(); flags {
	case 0:
		a.Elsewhere = p.elsewhere()
		return a
	case routeHost:
	case routeHost | routeSettled:
		a.Settled = true
	default:
		p.fail("unknown flags %#x", flags)
	}
	p.some()
	for len(p.rest) > 0 {
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
		o.There = true
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
	if b := p.take(dbadapter.VersionSize); b != nil {
		_ = r.Version.UnmarshalBinary(b) // it has its size
	}
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
