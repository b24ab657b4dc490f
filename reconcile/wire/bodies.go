package wire

import "github.com/syncd-io/syncd/dbadapter"

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
	// Apart and Whole are as in a RecordAnswer.
	Apart, Whole bool
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
type NamesAnswer struct {
	Apart bool // as in a RecordAnswer
	Named []bool
}

// Subject is SubjectBody; so is the next one.
func (*AskBody) Subject() Subject { return SubjectBody }

// Subject is SubjectBody.
func (*BodyAnswer) Subject() Subject { return SubjectBody }

// Subject is SubjectNames; so is the next one.
func (*AskNames) Subject() Subject { return SubjectNames }

// Subject is SubjectNames.
func (*NamesAnswer) Subject() Subject { return SubjectNames }

func (q *AskBody) appendQuestion(b []byte) []byte { return appendBytes(q.appendTo(b), q.Key) }

func (a *BodyAnswer) appendAnswer(b []byte) []byte {
	flags := flagsOf(a.Apart, a.Whole)
	if a.Apart || a.Record == nil {
		return append(b, flags)
	}
	return appendBytes(AppendPushed(append(b, flags|routeRecord), a.Record), a.Value)
}

func (p *parser) askBody() *AskBody { return &AskBody{ShardRow: p.shardRow(), Key: p.key()} }

func (p *parser) bodyAnswer() *BodyAnswer {
	flags, apart := p.answerFlags(routeRecord)
	a := &BodyAnswer{Apart: apart, Whole: flags&routeWhole != 0}
	if flags&routeRecord != 0 {
		r := p.pushed()
		a.Record, a.Value = &r, p.bytes(dbadapter.MaxValue, "a value")
	}
	return a
}

func (q *AskNames) appendQuestion(b []byte) []byte {
	b = q.appendTo(b)
	for i := range q.Names {
		b = appendBytes(append(b, q.Names[i].Salt[:]...), q.Names[i].Key)
	}
	return b
}

func (a *NamesAnswer) appendAnswer(b []byte) []byte {
	if b = append(b, flagsOf(a.Apart, false)); a.Apart {
		return b
	}
	for _, named := range a.Named {
		b = appendBool(b, named)
	}
	return b
}

func (p *parser) askNames() *AskNames {
	q := &AskNames{ShardRow: p.shardRow()}
	p.some()
	for len(p.rest) > 0 && p.err == nil {
		if len(q.Names) == BatchRecords {
			p.fail("more than %d names in one message", BatchRecords)
			break
		}
		var n BodyName
		copy(n.Salt[:], p.take(uint64(len(n.Salt))))
		n.Key = p.key()
		q.Names = append(q.Names, n)
	}
	return q
}

func (p *parser) namesAnswer() *NamesAnswer {
	flags, apart := p.answerFlags(0)
	a := &NamesAnswer{Apart: apart}
	switch {
	case apart:
		return a
	case flags&routeWhole != 0:
		p.fail("unknown flags %#x", flags)
	}
	p.some()
	for len(p.rest) > 0 && p.err == nil {
		if len(a.Named) == BatchRecords {
			p.fail("more than %d answers in one message", BatchRecords)
			break
		}
		a.Named = append(a.Named, p.bool())
	}
	return a
}
