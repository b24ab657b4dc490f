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

func (q *AskKept) appendQuestion(b []byte) []byte {
	return appendUvarint(appendBool(b, q.Aside), q.After)
}

func (a *KeptAnswer) appendAnswer(b []byte) []byte {
	b = appendBool(b, a.More)
	for i := range a.Entries {
		b = AppendKept(b, &a.Entries[i])
	}
	return b
}

// AppendKept appends an entry as it travels.
func AppendKept(b []byte, e *KeptEntry) []byte {
	b = appendUvarint(appendUvarint(appendUvarint(b, e.Seq), e.At), e.Size)
	b, _ = e.By.AppendBinary(appendHead(b, &e.Record, 0))
	return b
}

func appendBool(b []byte, is bool) []byte {
	if is {
		return append(b, 1)
	}
	return append(b, 0)
}

func (p *parser) askKept() *AskKept { return &AskKept{Aside: p.bool(), After: p.uvarint()} }

func (p *parser) keptAnswer() *KeptAnswer {
	a := &KeptAnswer{More: p.bool()}
	if a.More {
		p.some()
	}
	for len(p.rest) > 0 && p.err == nil {
		if len(a.Entries) == BatchRecords {
			p.fail("more than %d entries in one message", BatchRecords)
			break
		}
		e := KeptEntry{Seq: p.uvarint(), At: p.uvarint(), Size: p.uvarint()}
		e.Record, _ = p.head(flagsPushed)
		e.By = p.version()
		a.Entries = append(a.Entries, e)
	}
	return a
}
