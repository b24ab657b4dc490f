package wire

import (
	"encoding/binary"
	"math/bits"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/keyhash"
)

// The messages of the proof by range: a sync needs them only where the residuals
// differ.

// Hashes are those of what a side holds in parts of the space of indices, but for what
// the difference plan names. The initiator tells those of all groups of ranges. The
// responder answers with those of all ranges in the groups that differ. Groups has a
// bit for each of those.
type Hashes struct {
	Groups uint64
	Hashes []uint64
}

// Listing begins the exact comparison of some ranges. The initiator names the ranges
// that it lists in the Marks that follow, so many in all. It also names those that
// differ and that it leaves for another sync. The responder answers without ranges. Sum
// is what the sender holds outside the ranges left out, now that it has counted anew.
type Listing struct {
	Ranges, Left []dbadapter.Range
	Marks        uint64
	Sum          dbadapter.Sum
}

// Marks are a part of a listing, in ascending order of the index.
type Marks struct{ Marks []Mark }

// Mark stands for the bucket under an index in one sync.
type Mark struct {
	Index dbadapter.Index
	Hash  uint64
}

func (m *Hashes) appendBody(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, m.Groups)
	for _, h := range m.Hashes {
		b = binary.LittleEndian.AppendUint64(b, h)
	}
	return b
}

func (p *parser) hashes() Message {
	m := &Hashes{Groups: p.word()}
	if n := len(p.rest) / 8; n > dbadapter.Ranges {
		p.fail("%d hashes; there are %d ranges", n, dbadapter.Ranges)
	}
	for len(p.rest) > 0 {
		m.Hashes = append(m.Hashes, p.word())
	}
	if n := bits.OnesCount64(m.Groups); p.err == nil && len(m.Hashes) != n && len(m.Hashes) != n*dbadapter.RangesInGroup {
		p.fail("%d hashes for %d groups", len(m.Hashes), n)
	}
	return m
}

func (p *parser) word() uint64 {
	if b := p.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (m *Listing) appendBody(b []byte) []byte {
	for _, list := range [][]dbadapter.Range{m.Ranges, m.Left} {
		b = appendUvarint(b, uint64(len(list)))
		for _, r := range list {
			b = binary.LittleEndian.AppendUint16(b, uint16(r))
		}
	}
	b = appendUvarint(b, m.Marks)
	b = appendUvarint(b, m.Sum.Records)
	return m.Sum.Digest.AppendBinary(b)
}

func (p *parser) listing() Message {
	m := &Listing{Ranges: p.ranges(), Left: p.ranges()}
	m.Marks = p.uvarint()
	m.Sum = dbadapter.Sum{Records: p.uvarint(), Digest: p.digest()}
	return m
}

// ranges is an ascending list.
func (p *parser) ranges() (list []dbadapter.Range) {
	n := p.uvarint()
	if p.err == nil && n > dbadapter.Ranges {
		p.fail("a list of %d ranges; there are %d", n, dbadapter.Ranges)
	}
	for ; n > 0 && p.err == nil; n-- {
		b := p.take(2)
		if b == nil {
			break
		}
		r := dbadapter.Range(binary.LittleEndian.Uint16(b))
		if r >= dbadapter.Ranges || len(list) > 0 && r <= list[len(list)-1] {
			p.fail("a range that does not exist, or out of order")
		}
		list = append(list, r)
	}
	return list
}

func (m *Marks) appendBody(b []byte) []byte {
	var last dbadapter.Index
	for _, mark := range m.Marks {
		b = appendUvarint(b, uint64(mark.Index-last))
		b = binary.LittleEndian.AppendUint64(b, mark.Hash)
		last = mark.Index
	}
	return b
}

func (p *parser) marks() Message {
	m := &Marks{}
	p.some()
	var last dbadapter.Index
	for len(p.rest) > 0 {
		if len(m.Marks) == MaxMarks {
			p.fail("more than %d marks in one message", MaxMarks)
			break
		}
		last = p.indexAfter(last)
		m.Marks = append(m.Marks, Mark{Index: last, Hash: p.word()})
	}
	return m
}

// indexAfter reads an index that is greater than the last one, as the difference.
func (p *parser) indexAfter(last dbadapter.Index) dbadapter.Index {
	delta := p.uvarint()
	if p.err == nil && (delta == 0 || delta >= keyhash.P || uint64(last)+delta >= keyhash.P) {
		p.fail("an index outside the field, or out of order")
	}
	return last + dbadapter.Index(delta)
}
