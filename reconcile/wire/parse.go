package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/multiformats/go-varint"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/keyhash"
)

// parser reads a body from left to right. After the first fault every read
// yields zeros, so that the faults need to be looked at only once.
type parser struct {
	rest []byte
	err  error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	p.rest = nil
}

// take returns the next n bytes.
func (p *parser) take(n uint64) []byte {
	if n > uint64(len(p.rest)) {
		p.fail("%d bytes announced, %d left", n, len(p.rest))
		return nil
	}
	b := p.rest[:n:n]
	p.rest = p.rest[n:]
	return b
}

func (p *parser) byte() byte {
	if b := p.take(1); b != nil {
		return b[0]
	}
	return 0
}

// some refuses an empty list: it would be a message that costs its sender
// nothing and brings the session no further.
func (p *parser) some() {
	if len(p.rest) == 0 {
		p.fail("an empty list")
	}
}

func (p *parser) bool() bool {
	b := p.byte()
	if b > 1 {
		p.fail("a flag of value %d", b)
	}
	return b == 1
}

func (p *parser) uvarint() uint64 {
	n, size, err := varint.FromUvarint(p.rest)
	if err != nil {
		p.fail("number: %w", err)
		return 0
	}
	p.rest = p.rest[size:]
	return n
}

func (p *parser) bytes(limit uint64, what string) []byte {
	n := p.uvarint()
	if n > limit {
		p.fail("%s of %d bytes; at most %d are allowed", what, n, limit)
		return nil
	}
	return p.take(n)
}

func (p *parser) digest() dbadapter.Digest {
	if b := p.take(dbadapter.DigestSize); b != nil {
		return dbadapter.DigestFromBytes([dbadapter.DigestSize]byte(b))
	}
	return dbadapter.Digest{}
}

// residue is a number in [1, P−1].
func (p *parser) residue(what string) uint64 {
	n := p.uvarint()
	if p.err == nil && (n == 0 || n >= keyhash.P) {
		p.fail("%s %d outside the field", what, n)
	}
	return n
}

// estimator is nil if it is left out.
func (p *parser) estimator() rateless.Estimator {
	if b := p.bytes(rateless.EstimatorSize, "an estimator"); len(b) > 0 {
		return b
	}
	return nil
}

func (p *parser) cells() []rateless.Cell {
	if n := len(p.rest) / rateless.CellSize; n > MaxCells {
		p.fail("%d cells in one message; at most %d are allowed", n, MaxCells)
		return nil
	}
	cells, err := rateless.DecodeCells(p.rest)
	if err != nil {
		p.fail("%w", err)
	}
	p.rest = nil
	return cells
}

func (p *parser) message(kind Kind) Message {
	switch kind {
	case KindHello:
		return p.hello()
	case KindWelcome:
		m := &Welcome{}
		m.Nonce, m.Proof = p.proof()
		m.Records = p.uvarint()
		m.Digest = p.digest()
		m.Greeting = p.greeting()
		return m
	case KindSame:
		return &Same{}
	case KindMore:
		return &More{Cells: p.uvarint()}
	case KindCells:
		m := &Cells{Estimator: p.estimator()}
		p.some()
		m.Cells = p.cells()
		return m
	case KindIndices:
		return p.indices()
	case KindOffers:
		return p.offers()
	case KindResult:
		return p.result()
	case KindAnswer:
		return &Answer{Closing: p.bool(), Residual: p.digest()}
	case KindRecords:
		return p.records()
	case KindEnd:
		return p.end()
	case KindWorking:
		return &Working{}
	case KindSums:
		return p.sums()
	case KindHashes:
		return p.hashes()
	case KindListing:
		return p.listing()
	case KindMarks:
		return p.marks()
	case KindHeads:
		return p.heads()
	case KindRefuse:
		return p.refuse()
	case KindAsk:
		return p.ask()
	case KindReply:
		return p.reply()
	}
	p.fail("unknown kind")
	return nil
}

// hello parses no further than the version where that is not ours: what
// follows may have any form.
func (p *parser) hello() Message {
	m := &Hello{Version: p.byte()}
	if m.Version != Version {
		p.rest = nil
		return m
	}
	m.Mapping = p.byte()
	copy(m.Namespace[:], p.take(uint64(len(m.Namespace))))
	m.Nonce, m.Proof = p.proof()
	flags := p.byte()
	m.Direction = Direction(flags & helloDirection)
	m.Method = Method(flags & helloMethod >> 2)
	m.DryRun, m.ListsMayDiffer = flags&helloDry != 0, flags&helloLists != 0
	if m.Direction > Push || m.Method > MethodAll {
		p.fail("unknown flags %#x", flags)
	}
	m.Prefix = p.bytes(dbadapter.MaxKey, "a prefix")
	if flags&helloSpan != 0 {
		m.Span = p.span()
	}
	if flags&helloBehind != 0 {
		m.Behind = p.key()
		if p.err == nil && (len(m.Prefix) > 0 || flags&helloSpan != 0 || m.DryRun || m.Direction == Push || m.Method == MethodSketch) {
			p.fail("a sync that cannot begin behind a key")
		}
	}
	m.Records = p.uvarint()
	m.Digest = p.digest()
	m.Greeting = p.greeting()
	m.Estimator = p.estimator()
	m.Cells = p.cells()
	return m
}

// span is a part of all ranges, and not all of them.
func (p *parser) span() (s Span) {
	if b := p.take(4); b != nil {
		s = Span{dbadapter.Range(binary.BigEndian.Uint16(b)), dbadapter.Range(binary.BigEndian.Uint16(b[2:]))}
	}
	if p.err == nil && (s.From >= s.To || s.To > dbadapter.Ranges || s.Len() == dbadapter.Ranges) {
		p.fail("the ranges %d to %d are no part of all", s.From, s.To)
	}
	return s
}

func (p *parser) key() []byte {
	key := p.bytes(dbadapter.MaxKey, "a key")
	if p.err == nil && len(key) == 0 {
		p.fail("an empty key")
	}
	return key
}

func (p *parser) result() Message {
	m := &Result{Method: Method(p.byte()), Residual: p.digest(), Told: p.word(), Bytes: p.uvarint(), Estimate: p.uvarint()}
	switch {
	case m.Method != MethodSketch && m.Method != MethodAll && m.Method != MethodParts && m.Method != MethodRanges:
		p.fail("unknown method %d", m.Method)
	case m.Method == MethodAll && len(p.rest) > 0:
		m.Behind = p.key()
	}
	return m
}

func (p *parser) sums() Message {
	m := &Sums{}
	p.some()
	if n := len(p.rest) / 8; n > dbadapter.Ranges {
		p.fail("sums of %d ranges; there are %d", n, dbadapter.Ranges)
	}
	for len(p.rest) > 0 {
		if b := p.take(8); b != nil {
			m.Sums = append(m.Sums, binary.LittleEndian.Uint64(b))
		}
	}
	return m
}

func (p *parser) indices() Message {
	m := &Indices{Role: Role(p.byte())}
	if p.err == nil && (m.Role < Lacking || m.Role > Fetch) {
		p.fail("unknown role %d", m.Role)
	}
	p.some()
	var last dbadapter.Index
	for len(p.rest) > 0 {
		if len(m.Indices) == MaxIndices {
			p.fail("more than %d indices in one message", MaxIndices)
			break
		}
		last = p.indexAfter(last)
		m.Indices = append(m.Indices, last)
	}
	return m
}

// head reads what records and offers share, with flags that are among the known.
func (p *parser) head(known byte) (r dbadapter.Record, flags byte) {
	flags = p.byte()
	if flags&^known != 0 {
		p.fail("unknown flags %#x", flags)
	}
	r.Deleted = flags&flagDeleted != 0
	r.Key = p.bytes(dbadapter.MaxKey, "a key")
	if p.err == nil && len(r.Key) == 0 {
		p.fail("an empty key")
	}
	var version [dbadapter.VersionSize]byte
	if flags&flagHasWriter != 0 {
		copy(version[:], p.take(dbadapter.VersionSize))
	} else {
		copy(version[:], p.take(8))
	}
	if err := r.Version.UnmarshalBinary(version[:]); err != nil {
		p.fail("%w", err)
	}
	if v := r.Version; p.err == nil && flags&flagHasWriter != 0 && v.Writer == 0 && v.Incarnation == 0 {
		p.fail("a writer of zeros spelt out")
	}
	if flags&flagsOptional != 0 && p.err == nil {
		var err error
		if p.rest, err = r.ReadOptional(flags, p.rest); err != nil {
			p.fail("%w", err)
		}
	}
	if flags&flagSigned != 0 {
		if r.Version.Writer == 0 {
			var signer [8]byte
			copy(signer[:], p.take(uint64(len(signer))))
			r.Signer = dbadapter.WriterID(binary.BigEndian.Uint64(signer[:]))
		}
		r.Signature = p.take(dbadapter.SignatureSize)
	}
	return r, flags
}

func (p *parser) offers() Message {
	m := &Offers{Wanting: p.bool()}
	p.some()
	for len(p.rest) > 0 {
		if len(m.Offers) == MaxOffers {
			p.fail("more than %d offers in one message", MaxOffers)
			break
		}
		r, flags := p.head(flagsOffered)
		o := Offer{Record: r, Hashed: flags&flagMark != 0}
		if o.Hashed {
			copy(o.Hash[:], p.take(uint64(len(o.Hash))))
		}
		m.Offers = append(m.Offers, o)
	}
	return m
}

func (p *parser) records() Message {
	m := &Records{}
	p.some()
	for all := len(p.rest); len(p.rest) > 0; {
		if len(m.Records) == BatchRecords {
			p.fail("more than %d records in one message", BatchRecords)
			break
		}
		r, flags := p.head(flagsSent)
		s := Sent{Stub: flags&flagMark != 0, Withheld: flags&flagWithheld != 0}
		switch {
		case s.Stub && r.Deleted:
			p.fail("a tombstone without the value that it never has")
		case s.Withheld && (s.Stub || len(r.Signature) > 0):
			p.fail("a withheld record that is a stub or signed")
		case s.Withheld:
			s.Why, s.Digest = p.reason(), p.digest()
		case !s.Stub && !r.Deleted:
			r.Value = p.bytes(dbadapter.MaxValue, "a value")
		}
		s.Record = r
		if m.Records == nil && p.err == nil { // the others are about as long
			m.Records = make([]Sent, 0, min(BatchRecords, all/(all-len(p.rest))+1))
		}
		m.Records = append(m.Records, s)
	}
	return m
}

func (p *parser) end() Message {
	m := &End{Applied: p.uvarint(), Held: p.uvarint(), Collectable: p.uvarint()}
	for len(p.rest) > 0 {
		if len(m.Refusals) == MaxRefusals {
			p.fail("more than %d refusals in one message", MaxRefusals)
			break
		}
		r := Refusal{
			Index:  dbadapter.Index(p.residue("an index")),
			Digest: p.digest(),
			Reason: p.reason(),
		}
		m.Refusals = append(m.Refusals, r)
	}
	return m
}

func (p *parser) reason() Reason {
	r := Reason(p.byte())
	if p.err == nil && (r < ReasonClock || r > ReasonBody) {
		p.fail("unknown reason %d", r)
	}
	return r
}
