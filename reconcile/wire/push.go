package wire

import (
	"encoding/binary"
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
	b = append(b, Version, byte(m.Kind))
	b = appendBytes(b, m.Origin)
	b = binary.BigEndian.AppendUint64(b, m.Incarnation)
	b = appendUvarint(b, m.Number)
	switch m.Kind {
	case PushRecords:
		return append(b, records...)
	case PushDigest:
		return m.Sets.Control.AppendBinary(m.Sets.Data.AppendBinary(b))
	}
	return b
}

// AppendPushed appends a record of a push, or of a routed question or answer.
func AppendPushed(b []byte, r *dbadapter.Record) []byte {
	b = appendHead(b, r, 0)
	if r.Deleted {
		return b
	}
	return appendBytes(b, r.Value)
}

// ParsePushed parses what AppendPushed has made of one record. It keeps b's memory, and fails with ErrFrame.
func ParsePushed(b []byte) (dbadapter.Record, error) {
	p := parser{rest: b}
	r := p.pushed()
	if p.err == nil && len(p.rest) > 0 {
		p.fail("%d bytes are left over", len(p.rest))
	}
	if p.err != nil {
		return dbadapter.Record{}, fmt.Errorf("%w: a record: %w", ErrFrame, p.err)
	}
	return r, nil
}

// ParsePush parses a push. What it returns shares the memory of b. It fails with
// ErrFrame.
func ParsePush(b []byte) (*PushMessage, error) {
	if len(b) > MaxPush {
		return nil, fmt.Errorf("%w: a push of %d bytes; at most %d are allowed", ErrFrame, len(b), MaxPush)
	}
	p := parser{rest: b}
	m := p.push()
	if p.err == nil && len(p.rest) > 0 {
		p.fail("%d bytes are left over", len(p.rest))
	}
	if p.err != nil {
		return nil, fmt.Errorf("%w: a push: %w", ErrFrame, p.err)
	}
	return m, nil
}

func (p *parser) push() *PushMessage {
	if v := p.byte(); v != Version && p.err == nil {
		p.fail("version %d", v)
	}
	m := &PushMessage{Kind: PushKind(p.byte())}
	m.Origin = p.bytes(MaxOrigin, "an origin")
	if b := p.take(8); b != nil {
		m.Incarnation = binary.BigEndian.Uint64(b)
	}
	m.Number = p.uvarint()
	switch m.Kind {
	case PushRecords:
		p.some()
		for len(p.rest) > 0 {
			m.Records = append(m.Records, p.pushed())
		}
	case PushMore:
	case PushDigest:
		m.Sets.Data, m.Sets.Control = p.digest(), p.digest()
	default:
		p.fail("a push of kind %d", m.Kind)
	}
	return m
}
