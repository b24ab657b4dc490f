package wire

import (
	"encoding/binary"
	"math/bits"

	"github.com/syncd-io/syncd/dbadapter"
)

// The fields of the messages of a sync, in the order in which they travel.

// The flags of a Hello follow the direction, two bits, and the method, two bits.
const (
	helloTwo   = 3
	helloFlags = 4
)

// fields reads no further than a version that is not ours: what follows may have any form.
func (m *Hello) fields(c *codec) {
	if octet(c, &m.Version); c.foreign(m.Version) {
		return
	}
	octet(c, &m.Mapping)
	c.array(m.Namespace[:])
	c.array(m.Nonce[:])
	c.array(m.Proof[:])
	span := m.Span != (Span{})
	flags := byte(m.Direction) | byte(m.Method)<<2 | pack(&m.DryRun, &m.ListsMayDiffer, &span)<<helloFlags
	unknown := byte(0)
	if octet(c, &flags); c.reads {
		m.Direction, m.Method = Direction(flags&helloTwo), Method(flags>>2&helloTwo)
		unknown = unpack(flags>>helloFlags, &m.DryRun, &m.ListsMayDiffer, &span)
	}
	if m.Direction > Push || m.Method > MethodAll || unknown != 0 {
		c.fail("unknown flags %#x", flags)
	}
	field(c, &m.Prefix, dbadapter.MaxKey, "a prefix")
	if span {
		c.span(&m.Span)
	}
	c.sum(&m.Sum)
	m.Greeting.fields(c)
	c.estimator(&m.Estimator)
	c.cells(&m.Cells)
}

// foreign reports whether a version that was read is not ours, and reads nothing further then.
func (c *codec) foreign(version byte) bool {
	if !c.reads || version == Version {
		return false
	}
	c.rest = nil
	return true
}

// span is a part of all ranges, and not all of them.
func (c *codec) span(s *Span) {
	c.place(binary.BigEndian, &s.From)
	c.place(binary.BigEndian, &s.To)
	if s.From >= s.To || s.To > dbadapter.Ranges || s.Len() == dbadapter.Ranges {
		c.fail("the ranges %d to %d are no part of all", s.From, s.To)
	}
}

func (m *Welcome) fields(c *codec) {
	c.array(m.Nonce[:])
	c.array(m.Proof[:])
	c.sum(&m.Sum)
	m.Greeting.fields(c)
}

func (g *Greeting) fields(c *codec) {
	c.array(g.List[:])
	big(c, &g.Tau)
	big(c, &g.Floor)
	big(c, &g.Incarnation)
	big(c, &g.Time)
}

func (*Same) fields(*codec)     {}
func (*Working) fields(*codec)  {}
func (m *More) fields(c *codec) { uvarint(c, &m.Cells) }

func (m *Cells) fields(c *codec) {
	c.estimator(&m.Estimator)
	c.some()
	c.cells(&m.Cells)
}

func (m *Indices) fields(c *codec) {
	if octet(c, &m.Role); m.Role < Lacking || m.Role > Fetch {
		c.fail("unknown role %d", m.Role)
	}
	c.some()
	var last dbadapter.Index
	list(c, &m.Indices, MaxIndices, "indices", func(i *dbadapter.Index) {
		c.after(i, last)
		last = *i
	})
}

func (m *Offers) fields(c *codec) {
	c.bool(&m.Wanting)
	c.some()
	list(c, &m.Offers, MaxOffers, "offers", func(o *Offer) {
		if c.head(&o.Record, &o.Hashed, nil); o.Hashed {
			c.array(o.Hash[:])
		}
	})
}

func (m *Result) fields(c *codec) {
	octet(c, &m.Method)
	c.digest(&m.Residual)
	c.little(&m.Told)
	uvarint(c, &m.Bytes)
	uvarint(c, &m.Estimate)
	switch m.Method {
	case MethodSketch, MethodAll, MethodParts, MethodRanges:
	default:
		c.fail("unknown method %d", m.Method)
	}
}

func (m *Sums) fields(c *codec) {
	c.some()
	c.words(&m.Sums, "sums")
}

// words goes through a number for each of some ranges, up to the end of the body.
func (c *codec) words(all *[]uint64, what string) {
	list(c, all, dbadapter.Ranges, what, c.little)
}

func (m *Answer) fields(c *codec) {
	c.bool(&m.Closing)
	c.digest(&m.Residual)
}

func (m *Records) fields(c *codec) {
	c.some()
	list(c, &m.Records, BatchRecords, "records", func(s *Sent) {
		r := &s.Record
		c.head(r, &s.Stub, &s.Withheld)
		switch {
		case s.Stub && r.Deleted:
			c.fail("a tombstone without the value that it never has")
		case s.Withheld && (s.Stub || len(r.Signature) > 0):
			c.fail("a withheld record that is a stub or signed")
		case s.Withheld:
			c.reason(&s.Why)
			c.digest(&s.Digest)
		case !s.Stub && !r.Deleted:
			field(c, &r.Value, dbadapter.MaxValue, "a value")
		}
	})
}

func (m *End) fields(c *codec) {
	uvarint(c, &m.Applied)
	uvarint(c, &m.Held)
	uvarint(c, &m.Collectable)
	list(c, &m.Refusals, MaxRefusals, "refusals", func(r *Refusal) {
		c.index(&r.Index)
		c.digest(&r.Digest)
		c.reason(&r.Reason)
	})
}

func (m *Refuse) fields(c *codec) {
	octet(c, &m.Code)
	octet(c, &m.Version)
	counted(c, &m.Statements, MaxStatements, "statements", func(b *[]byte) {
		if field(c, b, MaxStatement, "a statement"); len(*b) == 0 {
			c.fail("an empty statement")
		}
	})
	if (m.Code == CodeRemoved) != (len(m.Statements) > 0) {
		c.fail("code %d with %d statements", m.Code, len(m.Statements))
	}
	c.text(&m.Text, uint64(min(len(c.rest), MaxText)), "a text")
}

func (m *Hashes) fields(c *codec) {
	c.little(&m.Groups)
	c.words(&m.Hashes, "hashes")
	if n := bits.OnesCount64(m.Groups); len(m.Hashes) != n && len(m.Hashes) != n*dbadapter.RangesInGroup {
		c.fail("%d hashes for %d groups", len(m.Hashes), n)
	}
}

func (m *Listing) fields(c *codec) {
	c.ranges(&m.Ranges)
	c.ranges(&m.Left)
	uvarint(c, &m.Marks)
	c.sum(&m.Sum)
}

// ranges is an ascending list.
func (c *codec) ranges(all *[]dbadapter.Range) {
	least := dbadapter.Range(0)
	counted(c, all, dbadapter.Ranges, "ranges", func(r *dbadapter.Range) {
		if c.place(binary.LittleEndian, r); *r >= dbadapter.Ranges || *r < least {
			c.fail("a range that does not exist, or out of order")
		}
		least = *r + 1
	})
}

func (m *Marks) fields(c *codec) {
	c.some()
	var last dbadapter.Index
	list(c, &m.Marks, MaxMarks, "marks", func(mark *Mark) {
		c.after(&mark.Index, last)
		c.little(&mark.Hash)
		last = mark.Index
	})
}

func (m *Heads) fields(c *codec) {
	if uvarint(c, &m.Count); m.Count == 0 || m.Count > MaxHeads {
		c.fail("%d heads asked for; 1 to %d are allowed", m.Count, MaxHeads)
	}
}
