package wire

import (
	"encoding/binary"

	"github.com/multiformats/go-varint"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
)

func appendUvarint(b []byte, n uint64) []byte {
	return append(b, varint.ToUvarint(n)...)
}

func appendBytes(b, field []byte) []byte {
	return append(appendUvarint(b, uint64(len(field))), field...)
}

// hello flags
const (
	helloDry       = 1 << 4
	helloLists     = 1 << 5
	helloSpan      = 1 << 6
	helloBehind    = 1 << 7
	helloDirection = 3
	helloMethod    = 3 << 2
)

func (m *Hello) appendBody(b []byte) []byte {
	b = append(b, m.Version, m.Mapping)
	b = append(b, m.Namespace[:]...)
	b = append(b, m.Nonce[:]...)
	b = append(b, m.Proof[:]...)
	flags := byte(m.Direction) | byte(m.Method)<<2
	if m.DryRun {
		flags |= helloDry
	}
	if m.ListsMayDiffer {
		flags |= helloLists
	}
	if m.Span != (Span{}) {
		flags |= helloSpan
	}
	if len(m.Behind) > 0 {
		flags |= helloBehind
	}
	b = append(b, flags)
	b = appendBytes(b, m.Prefix)
	if m.Span != (Span{}) {
		b = binary.BigEndian.AppendUint16(b, uint16(m.Span.From))
		b = binary.BigEndian.AppendUint16(b, uint16(m.Span.To))
	}
	if len(m.Behind) > 0 {
		b = appendBytes(b, m.Behind)
	}
	b = appendUvarint(b, m.Records)
	b = m.Digest.AppendBinary(b)
	b = m.Greeting.appendTo(b)
	b = appendBytes(b, m.Estimator)
	return rateless.AppendCells(b, m.Cells)
}

func (m *Welcome) appendBody(b []byte) []byte {
	b = append(b, m.Nonce[:]...)
	b = append(b, m.Proof[:]...)
	b = appendUvarint(b, m.Records)
	b = m.Digest.AppendBinary(b)
	return m.Greeting.appendTo(b)
}

func (m *Same) appendBody(b []byte) []byte    { return b }
func (m *Working) appendBody(b []byte) []byte { return b }
func (m *More) appendBody(b []byte) []byte    { return appendUvarint(b, m.Cells) }

func (m *Cells) appendBody(b []byte) []byte {
	return rateless.AppendCells(appendBytes(b, m.Estimator), m.Cells)
}

func (m *Indices) appendBody(b []byte) []byte {
	b = append(b, byte(m.Role))
	var last dbadapter.Index
	for _, i := range m.Indices {
		b = appendUvarint(b, uint64(i-last))
		last = i
	}
	return b
}

// record flags
const (
	flagDeleted = 1 << iota
	flagSigned
	flagMark
	flagHasWriter
	flagWithheld // of records only

	flagsOptional = dbadapter.FlagExpires | dbadapter.FlagReplaces
	flagsOffered  = flagDeleted | flagSigned | flagMark | flagHasWriter | flagsOptional
	flagsSent     = flagsOffered | flagWithheld
	flagsPushed   = flagDeleted | flagSigned | flagHasWriter | flagsOptional
)

// appendHead writes what records and offers share: flags, key, version, optional
// fields and signature. A version without a writer (a dated import) takes 8 bytes,
// and its signer 8 before the signature.
// The mark is a record's Stub and an offer's Hashed.
func appendHead(b []byte, r *dbadapter.Record, flags byte) []byte {
	flags |= r.OptionalFlags()
	if r.Deleted {
		flags |= flagDeleted
	}
	if len(r.Signature) > 0 {
		flags |= flagSigned
	}
	v := r.Version
	if v.Writer != 0 || v.Incarnation != 0 {
		flags |= flagHasWriter
	}
	b = append(b, flags)
	b = appendBytes(b, r.Key)
	var stack [dbadapter.VersionSize]byte
	version, _ := v.AppendBinary(stack[:0])
	if flags&flagHasWriter == 0 {
		version = version[:8]
	}
	b = r.AppendOptional(append(b, version...))
	if flags&flagSigned != 0 && v.Writer == 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(r.Signer))
	}
	return append(b, r.Signature...)
}

func (m *Offers) appendBody(b []byte) []byte {
	if m.Wanting {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	for i := range m.Offers {
		o := &m.Offers[i]
		if o.Hashed {
			b = append(appendHead(b, &o.Record, flagMark), o.Hash[:]...)
		} else {
			b = appendHead(b, &o.Record, 0)
		}
	}
	return b
}

func (m *Result) appendBody(b []byte) []byte {
	b = m.Residual.AppendBinary(append(b, byte(m.Method)))
	b = binary.LittleEndian.AppendUint64(b, m.Told)
	b = appendUvarint(appendUvarint(b, m.Bytes), m.Estimate)
	if len(m.Behind) > 0 {
		b = appendBytes(b, m.Behind)
	}
	return b
}

func (m *Sums) appendBody(b []byte) []byte {
	for _, n := range m.Sums {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

func (m *Answer) appendBody(b []byte) []byte {
	if m.Closing {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	return m.Residual.AppendBinary(b)
}

func (m *Records) appendBody(b []byte) []byte {
	for i := range m.Records {
		s := &m.Records[i]
		switch {
		case s.Withheld:
			b = s.Digest.AppendBinary(append(appendHead(b, &s.Record, flagWithheld), byte(s.Why)))
		case s.Stub:
			b = appendHead(b, &s.Record, flagMark)
		case s.Record.Deleted:
			b = appendHead(b, &s.Record, 0)
		default:
			b = appendBytes(appendHead(b, &s.Record, 0), s.Record.Value)
		}
	}
	return b
}

func (m *End) appendBody(b []byte) []byte {
	b = appendUvarint(b, m.Applied)
	b = appendUvarint(b, m.Held)
	b = appendUvarint(b, m.Collectable)
	for _, r := range m.Refusals {
		b = appendUvarint(b, uint64(r.Index))
		b = r.Digest.AppendBinary(b)
		b = append(b, byte(r.Reason))
	}
	return b
}

func (m *Refuse) appendBody(b []byte) []byte {
	b = append(b, byte(m.Code), m.Version)
	b = appendUvarint(b, uint64(len(m.Statements)))
	for _, s := range m.Statements {
		b = appendBytes(b, s)
	}
	return append(b, m.Text...)
}
