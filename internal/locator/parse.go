package locator

import (
	"encoding/binary"
	"fmt"

	"github.com/syncd-io/syncd/bfield/keyset"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
)

// parser reads fields; after the first malformed one, all are zero.
type parser struct {
	rest   []byte
	shards int
	err    error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: %s", ErrMessage, fmt.Sprintf(format, args...))
	}
	p.rest = nil
}

func (p *parser) take(n int) []byte {
	if n < 0 || n > len(p.rest) {
		p.fail("it ends early")
		return make([]byte, max(0, min(n, 16)))
	}
	b := p.rest[:n:n]
	p.rest = p.rest[n:]
	return b
}

func (p *parser) byte() byte        { return p.take(1)[0] }
func (p *parser) uint64() uint64    { return binary.BigEndian.Uint64(p.take(8)) }
func (p *parser) mark() (mark Mark) { copy(mark[:], p.take(8)); return mark }

func (p *parser) uvarint() uint64 {
	x, n := binary.Uvarint(p.rest)
	if n <= 0 {
		p.fail("a number that ends early, or is too large")
		return 0
	}
	p.rest = p.rest[n:]
	return x
}

func (p *parser) flags(known byte) byte {
	f := p.byte()
	if f&^known != 0 {
		p.fail("flags %d", f)
	}
	return f
}

// count is that of fields which take size bytes and more.
func (p *parser) count(most, size int) int {
	n := p.uvarint()
	if n > uint64(most) || n > uint64(len(p.rest)/size) {
		p.fail("a list of %d", n)
		return 0
	}
	return int(n)
}

func (p *parser) set() placement.Shard {
	s := p.uvarint()
	if s >= uint64(p.shards) {
		p.fail("a set of shard %d of %d", s, p.shards)
		return 0
	}
	return placement.Shard(s)
}

// code is that of a shard, or one of those that are allowed beside.
func (p *parser) code(beside ...Code) Code {
	c := Code(binary.BigEndian.Uint16(p.take(2)))
	if int(c) < p.shards {
		return c
	}
	for _, one := range beside {
		if c == one {
			return c
		}
	}
	p.fail("shard %d of %d", c, p.shards)
	return 0
}

func (p *parser) change() Entry {
	var b [8]byte
	copy(b[2:], p.take(6))
	index := binary.BigEndian.Uint64(b[:])
	if index >= indexEnd {
		p.fail("an index outside the field")
	}
	return NewEntry(dbadapter.Index(index), p.code(Gone, Shared))
}

func (m *Page) parse(p *parser) {
	f := p.flags(flagApart | flagNotWhole | flagEqual | flagAlike)
	m.Apart, m.NotWhole, m.Equal = f&flagApart != 0, f&flagNotWhole != 0, f&flagEqual != 0
	if m.Apart || m.NotWhole {
		if f&(f-1) != 0 {
			p.fail("flags %d", f)
		}
		return
	}
	if m.Log, m.Seq = p.uint64(), p.uvarint(); m.Log == 0 || m.Equal && f != flagEqual {
		p.fail("a page of log %d, flags %d", m.Log, f)
	}
	if m.Equal || p.err != nil {
		return
	}
	if m.Next = dbadapter.Index(p.uvarint()); f&flagAlike == 0 {
		var err error
		if m.Entries, _, _, p.rest, err = parseEntries(p.rest, p.shards); err != nil {
			p.fail("%v", err)
		}
	} else {
		c := p.code(Shared)
		if length, err := keyset.Length(p.rest); err != nil || length != len(p.rest) {
			p.fail("a block of %d bytes in %d: %v", length, len(p.rest), err)
			return
		}
		hashes, _, err := keyset.Decode(nil, keyset.Place(p.rest), p.rest)
		if err != nil || len(hashes) == 0 || hashes[len(hashes)-1] >= indexEnd {
			p.fail("indices that are none: %v", err)
			return
		}
		p.rest = nil
		for _, h := range hashes {
			m.Entries = append(m.Entries, NewEntry(dbadapter.Index(h), c))
		}
	}
	if n := len(m.Entries); n > 0 && m.Next != 0 && m.Next <= m.Entries[n-1].Index() || m.Next >= indexEnd {
		p.fail("it goes on at %d", m.Next)
	}
}
