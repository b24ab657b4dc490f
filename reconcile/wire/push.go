package wire

import (
	"fmt"

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
