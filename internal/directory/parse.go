package directory

import (
	"encoding/binary"
	"fmt"

	"github.com/syncd-io/syncd/bfield/keyset"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/keyhash"
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

func (p *parser) byte() byte     { return p.take(1)[0] }
func (p *parser) uint64() uint64 { return binary.BigEndian.Uint64(p.take(8)) }
func (p *parser) sum() Sum       { return Sum{p.uint64(), p.uint64()} }

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

// count is that of fields which take two bytes and more.
func (p *parser) count(most int) int {
	n := p.uvarint()
	if n > uint64(most) || n > uint64(len(p.rest)/2) {
		p.fail("a list of %d", n)
		return 0
	}
	return int(n)
}

func (p *parser) home() placement.Shard {
	s := p.uvarint()
	if s >= uint64(p.shards) {
		p.fail("a set of shard %d of %d", s, p.shards)
	}
	return placement.Shard(s)
}

func (p *parser) index() dbadapter.Index {
	var b [8]byte
	copy(b[2:], p.take(6))
	return dbadapter.Index(binary.BigEndian.Uint64(b[:]))
}

func (p *parser) code() Code {
	switch c := p.uvarint(); {
	case c == 0:
		return Gone
	case c == 1:
		return Shared
	case c-2 < uint64(p.shards):
		return Code(c - 2)
	default:
		p.fail("shard %d of %d", c-2, p.shards)
		return Gone
	}
}

// rows reads what appendRows has written; at is nil where any place will do.
func (p *parser) rows(at *keyset.Cursor) (rs rows, from keyset.Cursor, last bool) {
	wide := p.flags(flagWide) != 0
	length, err := keyset.Length(p.rest)
	if err != nil {
		p.fail("%v", err)
		return nil, from, false
	}
	block := p.take(length)
	if p.err != nil {
		return nil, from, false
	}
	from = keyset.Place(block)
	if at != nil && *at != from {
		p.fail("it follows another block")
	}
	hashes, next, err := keyset.Decode(nil, from, block)
	if err != nil {
		p.fail("%v", err)
		return nil, from, false
	}
	if len(hashes) > 0 && hashes[len(hashes)-1] >= keyhash.P {
		p.fail("an index outside the field")
	}
	width := codeWidth(p.shards, wide)
	packed := p.take((len(hashes)*int(width) + 7) / 8)
	if p.err != nil {
		return nil, from, false
	}
	var word uint64
	var have uint
	for _, hash := range hashes {
		for ; have < width; have += 8 {
			word |= uint64(packed[0]) << have
			packed = packed[1:]
		}
		c := Code(word & (1<<width - 1))
		word, have = word>>width, have-width
		switch {
		case int(c) == p.shards:
			c = Shared
		case int(c) > p.shards:
			p.fail("shard %d of %d", c, p.shards)
		}
		rs = append(rs, pack(dbadapter.Index(hash), c))
	}
	return rs, from, next.Done
}
