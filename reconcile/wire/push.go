package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/multiformats/go-varint"
	"github.com/syncd-io/syncd/dbadapter"
)

// MaxPush is the most bytes of a PushMessage. One record of 64 KiB fits in.
const MaxPush = 72 << 10

// PushKind says what a push brings.
type PushKind uint8

// The kinds of pushes.
const (
	// PushRecords brings records that its origin has just written.
	PushRecords PushKind = iota
	// PushMore says that its origin has written what it does not push: a sync
	// brings it.
	PushMore
	// PushDigest says what set its sender holds, after a while without changes.
	PushDigest
)

// MaxOrigin is the most bytes of a peer id.
const MaxOrigin = 64

// PushMessage is what a node tells all members of a namespace at once. It travels outside
// sessions, and is no frame: its carrier keeps messages apart. It decides
// nothing; whatever it does, a sync would have done.
type PushMessage struct {
	// Origin is the node that made the push, in binary. It may be another than
	// the peer that passed it on, and is not proven. It is empty in a push that its origin
	// sends to a member directly.
	Origin []byte
	// Incarnation is that of the origin's namespace since it was opened. Number counts
	// its pushes of records and of more from 1 on, so that a gap says that one was
	// lost. A digest has the number of the last one before it.
	Incarnation, Number uint64
	Kind                PushKind
	// Records are of PushRecords.
	Records []dbadapter.Record
	// Sets are of PushDigest.
	Sets Sets
}

// Sets are the digests of the two sets of a namespace: its records, and its control
// namespace.
type Sets struct{ Data, Control dbadapter.Digest }

// AppendPush appends a push, whose records AppendPushed has encoded one after the
// other.
func AppendPush(b []byte, m *PushMessage, records []byte) []byte {
	b = written(b, m.fields)
	if m.Kind == PushRecords {
		b = append(b, records...)
	}
	return b
}

// AppendPushed appends a record of a push, or of a routed question or answer.
func AppendPushed(b []byte, r *dbadapter.Record) []byte {
	return written(b, func(c *codec) { c.pushed(r) })
}

// ParsePushed parses what AppendPushed has made of one record. It keeps b's memory, and fails with ErrFrame.
func ParsePushed(b []byte) (dbadapter.Record, error) {
	var r dbadapter.Record
	if err := readAll(b, func(c *codec) { c.pushed(&r) }); err != nil {
		return dbadapter.Record{}, fmt.Errorf("%w: a record: %w", ErrFrame, err)
	}
	return r, nil
}

// ParsePush parses a push. What it returns shares the memory of b. It fails with
// ErrFrame.
func ParsePush(b []byte) (*PushMessage, error) {
	if len(b) > MaxPush {
		return nil, fmt.Errorf("%w: a push of %d bytes; at most %d are allowed", ErrFrame, len(b), MaxPush)
	}
	m := &PushMessage{}
	if err := readAll(b, m.fields); err != nil {
		return nil, fmt.Errorf("%w: a push: %w", ErrFrame, err)
	}
	return m, nil
}

// fields are those of a push; AppendPush writes its records, which are encoded already.
func (m *PushMessage) fields(c *codec) {
	version := byte(Version)
	if octet(c, &version); version != Version {
		c.fail("version %d", version)
	}
	octet(c, &m.Kind)
	field(c, &m.Origin, MaxOrigin, "an origin")
	big(c, &m.Incarnation)
	uvarint(c, &m.Number)
	switch m.Kind {
	case PushRecords:
		if c.some(); c.reads {
			list(c, &m.Records, MaxPush, "records", c.pushed)
		}
	case PushMore:
	case PushDigest:
		c.digest(&m.Sets.Data)
		c.digest(&m.Sets.Control)
	default:
		c.fail("a push of kind %d", m.Kind)
	}
}

// MaxDirect is the most members of a namespace whose pushes go directly from their origin
// to each of them. A write is then sent at most 15 times by its origin, which takes a
// third of the bytes of a mesh. In a larger namespace the origin's own link would carry
// many times what it writes, and a mesh shares that out.
const MaxDirect = 16

// TopicSize is the length of a namespace's topic.
const TopicSize = 16

// Topic names a namespace to those that hold its secret.
type Topic [TopicSize]byte

// A stream of direct pushes carries messages, each behind its length as a uvarint. The
// length 0 is followed by the topic of all messages behind it, any other by a push.

// AppendTopic appends what tells the topic of the pushes that follow.
func AppendTopic(b []byte, t Topic) []byte { return append(append(b, 0), t[:]...) }

// AppendDirect appends a push to a stream.
func AppendDirect(b, push []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(push))), push...)
}

// ReadDirect reads the next push of a stream, and the topic if that changes; topic is the
// one before. What it returns shares no memory with r.
func ReadDirect(r *bufio.Reader, topic *Topic) (push []byte, err error) {
	for {
		if push, err = readDelimited(r, MaxPush, "a push"); err != nil || len(push) > 0 {
			return push, err
		}
		if _, err := io.ReadFull(r, topic[:]); err != nil {
			return nil, err
		}
	}
}

// readDelimited reads bytes behind their length. io.EOF says that the stream has ended before it.
func readDelimited(r *bufio.Reader, most uint64, what string) ([]byte, error) {
	n, err := varint.ReadUvarint(r)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: a length: %w", ErrFrame, err)
	case n > most:
		return nil, fmt.Errorf("%w: %s of %d bytes; at most %d are allowed", ErrFrame, what, n, most)
	}
	b := make([]byte, n)
	_, err = io.ReadFull(r, b)
	return b, err
}

// TakesKind says what a Takes tells.
type TakesKind uint8

// The kinds of Takes.
const (
	// TakesReady says that all which its sender takes as yet was told.
	TakesReady TakesKind = iota
	// TakesTopic says that its sender takes the pushes of a topic.
	TakesTopic
	// TakesNoMore says that it takes those of a topic no more.
	TakesNoMore
)

// Takes is what the receiver of direct pushes tells their sender.
type Takes struct {
	Kind  TakesKind
	Topic Topic // but for TakesReady
	// Links are of TakesTopic: the members, in binary, that take the pushes of the topic
	// which this member makes.
	Links [][]byte
}

func (t *Takes) fields(c *codec) {
	if octet(c, &t.Kind); t.Kind > TakesNoMore {
		c.fail("takes of kind %d", t.Kind)
	}
	if t.Kind == TakesReady {
		return
	}
	if c.array(t.Topic[:]); t.Kind == TakesTopic {
		list(c, &t.Links, MaxDirect, "links", func(id *[]byte) { field(c, id, MaxOrigin, "a member's id") })
	}
}

// maxTakes is the most bytes of a Takes.
const maxTakes = 1 + TopicSize + MaxDirect*(1+MaxOrigin)

// AppendTakes appends a Takes behind its length.
func AppendTakes(b []byte, t *Takes) []byte { return AppendDirect(b, written(nil, t.fields)) }

// ReadTakes reads the next Takes of a stream.
func ReadTakes(r *bufio.Reader) (*Takes, error) {
	b, err := readDelimited(r, maxTakes, "takes")
	if err != nil {
		return nil, err
	}
	t := &Takes{}
	if err := readAll(b, t.fields); err != nil {
		return nil, fmt.Errorf("%w: takes: %w", ErrFrame, err)
	}
	return t, nil
}
