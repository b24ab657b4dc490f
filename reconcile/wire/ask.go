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
	// Subject is that of the question.
	Subject() Subject
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
	var subject Subject
	if !c.reads {
		subject = m.Answer.Subject()
	}
	if !c.subject(&subject) {
		return
	}
	if c.reads {
		m.Answer = subjects[subject].answer()
		if subject.byRow() && bytes.Equal(c.rest, []byte{0}) {
			m.Answer = &Apart{subject}
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
