package wire

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/multiformats/go-varint"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/keyhash"
)

// codec goes through the fields of a body from left to right. Each message lists its fields
// once, and the list serves both ways: a codec that writes appends the fields to rest, one that
// reads takes them off it. Only a codec that reads stores into a message, and only it
// checks. After the first fault every read yields zeros, so that the faults need to be looked
// at only once.
type codec struct {
	reads bool
	rest  []byte
	err   error
}

// written appends what fields writes.
func written(b []byte, fields func(*codec)) []byte {
	c := codec{rest: b}
	fields(&c)
	return c.rest
}

// readAll reads a body with fields, which must use it up.
func readAll(b []byte, fields func(*codec)) error {
	c := codec{reads: true, rest: b}
	fields(&c)
	if len(c.rest) > 0 {
		c.fail("%d bytes too many", len(c.rest))
	}
	return c.err
}

// fail says that what was read is malformed. What is written is the caller's to answer for.
func (c *codec) fail(format string, args ...any) {
	if !c.reads {
		return
	}
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
	c.rest = nil
}

// take returns the next n bytes.
func (c *codec) take(n uint64) []byte {
	if n > uint64(len(c.rest)) {
		c.fail("%d bytes announced, %d left", n, len(c.rest))
		return nil
	}
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}

// over reports whether the body ends here: one that is read where nothing is left, one that is
// written where empty says so.
func (c *codec) over(empty bool) bool {
	if c.reads {
		return len(c.rest) == 0
	}
	return empty
}

// some refuses an empty list: it would be a message that costs its sender
// nothing and brings the session no further.
func (c *codec) some() {
	if c.reads && len(c.rest) == 0 {
		c.fail("an empty list")
	}
}

// array goes through bytes of a fixed number.
func (c *codec) array(v []byte) {
	if c.reads {
		copy(v, c.take(uint64(len(v))))
	} else {
		c.rest = append(c.rest, v...)
	}
}

// octet goes through a number of one byte.
func octet[T ~byte](c *codec, v *T) {
	if !c.reads {
		c.rest = append(c.rest, byte(*v))
	} else if b := c.take(1); b != nil {
		*v = T(b[0])
	}
}

// pack is a byte with a bit for each flag, the first one lowest. A nil flag is not set.
func pack(flags ...*bool) (packed byte) {
	for n, flag := range flags {
		if flag != nil && *flag {
			packed |= 1 << n
		}
	}
	return packed
}

// unpack sets the flags, and returns the bits that have none.
func unpack(packed byte, flags ...*bool) (unknown byte) {
	for n, flag := range flags {
		if flag != nil {
			*flag = packed&(1<<n) != 0
			packed &^= 1 << n
		}
	}
	return packed
}

// flags goes through a byte of flags, as pack makes it, and returns it. A bit that has no flag
// is refused.
func (c *codec) flags(flags ...*bool) byte {
	packed := pack(flags...)
	octet(c, &packed)
	if !c.reads {
		return packed
	}
	if unpack(packed, flags...) != 0 {
		c.fail("unknown flags %#x", packed)
	}
	return packed
}

func (c *codec) bool(v *bool) { c.flags(v) }

// uvarint goes through a number in as many bytes as it takes.
func uvarint[T ~uint32 | ~uint64](c *codec, v *T) {
	if !c.reads {
		c.rest = binary.AppendUvarint(c.rest, uint64(*v))
		return
	}
	n, size, err := varint.FromUvarint(c.rest)
	if err == nil && uint64(T(n)) != n {
		err = varint.ErrOverflow
	}
	if err != nil {
		c.fail("number: %w", err)
		return
	}
	*v, c.rest = T(n), c.rest[size:]
}

// big goes through a number of eight bytes, the most significant first.
func big[T ~uint64](c *codec, v *T) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(*v))
	if c.array(b[:]); c.reads {
		*v = T(binary.BigEndian.Uint64(b[:]))
	}
}

// little goes through a number of eight bytes, the least significant first.
func (c *codec) little(v *uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], *v)
	if c.array(b[:]); c.reads {
		*v = binary.LittleEndian.Uint64(b[:])
	}
}

// place goes through the number of a range, in two bytes.
func (c *codec) place(order binary.ByteOrder, r *dbadapter.Range) {
	var b [2]byte
	order.PutUint16(b[:], uint16(*r))
	if c.array(b[:]); c.reads {
		*r = dbadapter.Range(order.Uint16(b[:]))
	}
}

// length goes through the length of what follows, of which limit is allowed.
func (c *codec) length(n int, limit uint64, what string) uint64 {
	size := uint64(n)
	if uvarint(c, &size); c.reads && size > limit {
		c.fail("%s of %d bytes; at most %d are allowed", what, size, limit)
		return 0
	}
	return size
}

// field goes through bytes behind their length.
func field[T ~[]byte](c *codec, v *T, limit uint64, what string) {
	if n := c.length(len(*v), limit, what); c.reads {
		*v = c.take(n)
	} else {
		c.rest = append(c.rest, *v...)
	}
}

// orNone is a field that is nil where it is empty.
func orNone[T ~[]byte](c *codec, v *T, limit uint64, what string) {
	if field(c, v, limit, what); c.reads && len(*v) == 0 {
		*v = nil
	}
}

// text goes through n bytes of UTF-8.
func (c *codec) text(v *string, n uint64, what string) {
	if !c.reads {
		c.rest = append(c.rest, *v...)
		return
	}
	if *v = string(c.take(n)); !utf8.ValidString(*v) {
		c.fail("%s that is not UTF-8", what)
	}
}

// made is what an optional field points to, once that is known to be there.
func made[T any](c *codec, v **T) *T {
	if c.reads {
		*v = new(T)
	}
	return *v
}

// list goes through a list that ends with the body.
func list[T any](c *codec, all *[]T, most int, what string, each func(*T)) {
	if !c.reads {
		for i := range *all {
			each(&(*all)[i])
		}
		return
	}
	for before := len(c.rest); len(c.rest) > 0; {
		if len(*all) == most {
			c.fail("more than %d %s in one message", most, what)
			return
		}
		if len(*all) == 1 { // the others are about as long
			*all = slices.Grow(*all, min(most-1, len(c.rest)/(before-len(c.rest))))
		}
		*all = append(*all, *new(T))
		each(&(*all)[len(*all)-1])
	}
}

// counted goes through a list behind its length.
func counted[T any](c *codec, all *[]T, most int, what string, each func(*T)) {
	n := uint64(len(*all))
	if uvarint(c, &n); c.reads && n > uint64(most) {
		c.fail("a list of %d %s; at most %d are allowed", n, what, most)
	}
	for i := 0; uint64(i) < n && c.err == nil; i++ {
		if c.reads {
			*all = append(*all, *new(T))
		}
		each(&(*all)[i])
	}
}

func (c *codec) digest(d *dbadapter.Digest) {
	if !c.reads {
		c.rest = d.AppendBinary(c.rest)
	} else if b := c.take(dbadapter.DigestSize); b != nil {
		*d = dbadapter.DigestFromBytes([dbadapter.DigestSize]byte(b))
	}
}

func (c *codec) sum(s *dbadapter.Sum) {
	uvarint(c, &s.Records)
	c.digest(&s.Digest)
}

func (c *codec) version(v *dbadapter.Version) { c.clock(v, dbadapter.VersionSize) }

// clock goes through the first bytes of a version; the others are zeros.
func (c *codec) clock(v *dbadapter.Version, size int) {
	var b [dbadapter.VersionSize]byte
	if !c.reads {
		_, _ = v.AppendBinary(b[:0]) // never fails
	}
	if c.array(b[:size]); c.reads {
		_ = v.UnmarshalBinary(b[:]) // it has its size
	}
}

// index is a number in [1, P−1].
func (c *codec) index(i *dbadapter.Index) {
	if uvarint(c, i); *i == 0 || *i >= keyhash.P {
		c.fail("an index %d outside the field", *i)
	}
}

// after goes through an index that is greater than the last one, as the difference.
func (c *codec) after(i *dbadapter.Index, last dbadapter.Index) {
	delta := *i - last
	if uvarint(c, &delta); !c.reads {
		return
	}
	if *i = last + delta; delta == 0 || delta >= keyhash.P || *i >= keyhash.P {
		c.fail("an index outside the field, or out of order")
	}
}

func (c *codec) key(key *[]byte) {
	if field(c, key, dbadapter.MaxKey, "a key"); len(*key) == 0 {
		c.fail("an empty key")
	}
}

func (c *codec) reason(r *Reason) {
	octet(c, r)
	c.known(*r)
}

// perhaps goes through a reason, or the 0 in the place of one.
func (c *codec) perhaps(r *Reason) {
	if octet(c, r); *r != 0 {
		c.known(*r)
	}
}

func (c *codec) known(r Reason) {
	if r < ReasonClock || r > ReasonBody {
		c.fail("unknown reason %d", r)
	}
}

func (c *codec) estimator(e *rateless.Estimator) {
	orNone(c, e, rateless.EstimatorSize, "an estimator")
}

// cells are the last field of a body.
func (c *codec) cells(cells *[]rateless.Cell) {
	if !c.reads {
		c.rest = rateless.AppendCells(c.rest, *cells)
		return
	}
	if n := len(c.rest) / rateless.CellSize; n > MaxCells {
		c.fail("%d cells in one message; at most %d are allowed", n, MaxCells)
		return
	}
	var err error
	if *cells, err = rateless.DecodeCells(c.rest); err != nil {
		c.fail("%w", err)
	}
	c.rest = nil
}

// optional goes through the fields of a record that its flags announce.
func (c *codec) optional(r *dbadapter.Record, flags byte) {
	if !c.reads {
		c.rest = r.AppendOptional(c.rest)
		return
	}
	if c.err != nil {
		return
	}
	var err error
	if c.rest, err = r.ReadOptional(flags, c.rest); err != nil {
		c.fail("%w", err)
	}
}

// head goes through what records and offers share: flags, key, version, optional fields and
// signature. A version without a writer (a dated import) takes 8 bytes, and its signer 8
// before the signature. The mark is a record's Stub and an offer's Hashed; mark and withheld
// are nil where there is none.
func (c *codec) head(r *dbadapter.Record, mark, withheld *bool) (flags byte) {
	v := &r.Version
	optional := r.OptionalFlags()
	signed, writer := len(r.Signature) > 0, v.Writer != 0 || v.Incarnation != 0
	expires, replaces := optional&dbadapter.FlagExpires != 0, optional&dbadapter.FlagReplaces != 0
	flags = c.flags(&r.Deleted, &signed, mark, &writer, withheld, &expires, &replaces)
	c.key(&r.Key)
	if writer {
		if c.version(v); v.Writer == 0 && v.Incarnation == 0 {
			c.fail("a writer of zeros spelt out")
		}
	} else {
		c.clock(v, 8)
	}
	c.optional(r, flags)
	if !signed {
		return flags
	}
	if v.Writer == 0 {
		big(c, &r.Signer)
	}
	if c.reads {
		r.Signature = c.take(dbadapter.SignatureSize)
	} else {
		c.rest = append(c.rest, r.Signature...)
	}
	return flags
}

// pushed goes through a record in full, as in a push.
func (c *codec) pushed(r *dbadapter.Record) {
	if c.head(r, nil, nil); !r.Deleted {
		field(c, &r.Value, dbadapter.MaxValue, "a value")
	}
}
