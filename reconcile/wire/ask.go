package wire

import (
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
	appendQuestion(b []byte) []byte
}

// Answering is the answer to a Question of the same subject.
type Answering interface {
	// Subject is that of the question.
	Subject() Subject
	appendAnswer(b []byte) []byte
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

// Kind is the byte that tells the messages apart; so is the next one.
func (*Ask) Kind() Kind   { return KindAsk }
func (*Reply) Kind() Kind { return KindReply }

// Subject is SubjectKey.
func (*AskKey) Subject() Subject { return SubjectKey }

// Subject is SubjectKey.
func (*KeyAnswer) Subject() Subject { return SubjectKey }

// Subject is SubjectSet.
func (*AskSet) Subject() Subject { return SubjectSet }

// Subject is SubjectSet.
func (*SetAnswer) Subject() Subject { return SubjectSet }

func (m *Ask) appendBody(b []byte) []byte {
	b = append(b, m.Version)
	if m.Version != Version {
		return b
	}
	b = append(b, m.Namespace[:]...)
	b = append(b, m.Nonce[:]...)
	b = append(b, m.Proof[:]...)
	b = m.Greeting.appendTo(b)
	b = appendUvarint(b, m.Patience)
	return m.Question.appendQuestion(append(b, byte(m.Question.Subject())))
}

func (m *Reply) appendBody(b []byte) []byte {
	b = append(b, m.Nonce[:]...)
	b = append(b, m.Proof[:]...)
	b = m.Greeting.appendTo(b)
	return m.Answer.appendAnswer(append(b, byte(m.Answer.Subject())))
}

func (q *AskKey) appendQuestion(b []byte) []byte {
	return appendKeyed(b, &q.Held, q.Digest)
}

func (a *KeyAnswer) appendAnswer(b []byte) []byte {
	b = append(b, byte(a.Declines))
	if len(a.Held.Key) == 0 {
		return b
	}
	b = append(appendKeyed(b, &a.Held, a.Digest), byte(a.Declined))
	if a.Declined == 0 {
		return b
	}
	return appendUvarint(b, a.Rest)
}

// appendKeyed appends a record's head and digest, or the key alone.
func appendKeyed(b []byte, r *dbadapter.Record, digest dbadapter.Digest) []byte {
	b = appendHead(b, r, 0)
	if r.Version.IsZero() {
		return b
	}
	return digest.AppendBinary(b)
}

func (q *AskSet) appendQuestion(b []byte) []byte  { return appendSum(b, q.Sum) }
func (a *SetAnswer) appendAnswer(b []byte) []byte { return appendSum(b, a.Sum) }

func appendSum(b []byte, s dbadapter.Sum) []byte {
	return s.Digest.AppendBinary(appendUvarint(b, s.Records))
}

// ask parses no further than a version that is not ours.
func (p *parser) ask() Message {
	m := &Ask{Version: p.byte()}
	if m.Version != Version {
		p.rest = nil
		return m
	}
	copy(m.Namespace[:], p.take(uint64(len(m.Namespace))))
	m.Nonce, m.Proof = p.proof()
	m.Greeting = p.greeting()
	if m.Patience = p.uvarint(); m.Patience > MaxPatience {
		p.fail("a patience of %d ms; at most %d are allowed", m.Patience, MaxPatience)
	}
	switch subject := Subject(p.byte()); subject {
	case SubjectKey:
		q := &AskKey{}
		q.Held, q.Digest = p.keyed()
		m.Question = q
	case SubjectSet:
		m.Question = &AskSet{Sum: p.sum()}
	case SubjectStatus:
		m.Question = &AskStatus{}
	case SubjectRecord:
		m.Question = p.askRecord()
	case SubjectHold:
		m.Question = p.askHold()
	case SubjectScan:
		m.Question = p.askScan()
	case SubjectChanges:
		m.Question = p.askChanges()
	case SubjectKept:
		m.Question = p.askKept()
	case SubjectBody:
		m.Question = p.askBody()
	case SubjectNames:
		m.Question = p.askNames()
	case SubjectFeed:
		m.Question = &AskFeed{Message: p.feed("a question about the feed")}
	default:
		p.fail("a question about %d", subject)
	}
	if p.err == nil && m.Patience != 0 && m.Question.Subject().Routed() {
		p.fail("a routed question with a patience of %d ms", m.Patience)
	}
	return m
}

func (p *parser) reply() Message {
	m := &Reply{}
	m.Nonce, m.Proof = p.proof()
	m.Greeting = p.greeting()
	switch subject := Subject(p.byte()); subject {
	case SubjectKey:
		a := &KeyAnswer{}
		a.Declines = p.perhaps()
		if len(p.rest) > 0 {
			if a.Held, a.Digest = p.keyed(); p.err == nil && a.Held.Version.IsZero() {
				p.fail("a key that is held without a version")
			}
			if a.Declined = p.perhaps(); a.Declined != 0 {
				if a.Rest = p.uvarint(); a.Rest > MaxRest {
					p.fail("a rest of %d ms; at most %d are allowed", a.Rest, uint64(MaxRest))
				}
			}
		}
		m.Answer = a
	case SubjectSet:
		m.Answer = &SetAnswer{Sum: p.sum()}
	case SubjectStatus:
		m.Answer = p.status()
	case SubjectRecord:
		m.Answer = p.recordAnswer()
	case SubjectHold:
		m.Answer = p.holdAnswer()
	case SubjectScan:
		m.Answer = p.scanAnswer()
	case SubjectChanges:
		m.Answer = p.changesAnswer()
	case SubjectKept:
		m.Answer = p.keptAnswer()
	case SubjectBody:
		m.Answer = p.bodyAnswer()
	case SubjectNames:
		m.Answer = p.namesAnswer()
	case SubjectFeed:
		m.Answer = &FeedAnswer{Message: p.feed("an answer about the feed")}
	default:
		p.fail("an answer about %d", subject)
	}
	return m
}

// perhaps reads a reason, or the 0 in the place of one.
func (p *parser) perhaps() Reason {
	if len(p.rest) > 0 && p.rest[0] == 0 {
		p.rest = p.rest[1:]
		return 0
	}
	return p.reason()
}

// keyed reads a record's head and digest, or a key alone.
func (p *parser) keyed() (r dbadapter.Record, digest dbadapter.Digest) {
	r, had := p.head(flagsPushed)
	switch {
	case !r.Version.IsZero():
		digest = p.digest()
	case had != 0:
		p.fail("flags %#x of a key that is not held", had)
	}
	return r, digest
}

func (p *parser) sum() dbadapter.Sum { return dbadapter.Sum{Records: p.uvarint(), Digest: p.digest()} }

func (p *parser) proof() (nonce Nonce, proof Proof) {
	copy(nonce[:], p.take(uint64(len(nonce))))
	copy(proof[:], p.take(uint64(len(proof))))
	return nonce, proof
}
