package ribbon

import (
	"errors"

	"github.com/syncd-io/syncd/bfield/internal/saved"
)

// The saved format. All numbers are little-endian.
//
//	4 bytes  "RIBN"
//	1        version: 1
//	1        kind: 1 or 2 a filter of the Kind one below, 3 a Retrieval, 4 a Map;
//	         0 was a homogeneous filter, which a standard one beats
//	1        value bits (0 for a filter)
//	1        fingerprint bits (0 for a Retrieval)
//	8        seed
//	8        keys
//	then the table, or the two of a Map whose entries are wider than 64 bits:
//	  8      levels: 0 if there are no keys
//	  for each level:
//	    8    buckets
//	    8 each  codes if this level bumps, the numbers of its salts if not
//	    8 each  words
//	8        XXH3 of all that is before
//
// The lengths of codes and words follow from buckets and the bits. So a file
// has one form, and nothing is allocated that the data does not fill.
var format = saved.Format{Magic: "RIBN\x01", Err: ErrFormat}

const (
	kindRetrieval = byte(kinds) + 1
	kindMap       = byte(kinds) + 2
)

// ErrFormat is wrapped by the errors of the UnmarshalBinary methods.
var ErrFormat = errors.New("ribbon: not a saved structure of this type")

// header is what precedes the tables.
type header struct {
	kind                 byte
	values, fingerprints int
	seed                 uint64
	keys                 int
}

func (t *tables) marshal(kind byte) ([]byte, error) {
	size := len(format.Magic) + 3 + 2*8 + saved.SumSize
	all, values := []*table{t.main}, t.main.values
	if t.high != nil {
		all, values = append(all, t.high), values+t.high.values
	}
	for _, one := range all {
		size += 8
		for _, l := range one.levels {
			size += 8 * (1 + len(l.codes) + len(l.salts) + len(l.words))
		}
	}
	b := make([]byte, 0, size)
	b = append(append(b, format.Magic...), kind, byte(values), byte(t.main.fingerprints))
	b = saved.Append(b, t.seed, uint64(t.keys))
	for _, one := range all {
		b = saved.Append(b, uint64(len(one.levels)))
		for _, l := range one.levels {
			b = saved.Append(saved.Append(b, l.buckets), l.codes...)
			for _, s := range l.salts {
				b = saved.Append(b, s.number)
			}
			b = saved.Append(b, l.words...)
		}
	}
	return saved.Sealed(b), nil
}

// parse reads the tables of a structure of a kind from first to last.
func parse(data []byte, first, last byte) (t tables, kind byte, err error) {
	in := format.Read(data)
	h := parseHeader(in)
	if h.kind < first || h.kind > last {
		in.Refuse("kind %d is of another type", h.kind)
	}
	t = tables{seed: h.seed, keys: h.keys}
	low := lowBits(h.values, h.fingerprints)
	t.main = parseTable(in, h, low, h.fingerprints)
	if low < h.values {
		t.high = parseTable(in, h, h.values-low, 0)
	}
	return t, h.kind, in.End()
}

// parseHeader checks everything but the tables.
func parseHeader(in *saved.Reader) header {
	h := header{kind: in.Byte(), values: int(in.Byte()), fingerprints: int(in.Byte()), seed: in.Word()}
	keys := in.Word()
	h.keys = int(keys)
	switch {
	case h.kind == 0:
		in.Refuse("a homogeneous filter is no longer read: build a standard one")
	case h.kind > kindMap:
		in.Refuse("kind %d is unknown", h.kind)
	case (h.kind >= kindRetrieval) != (h.values > 0) || h.values > 64:
		in.Refuse("kind %d with values of %d bits", h.kind, h.values)
	case (h.kind != kindRetrieval) != (h.fingerprints > 0) || h.fingerprints > maxFingerprint:
		in.Refuse("kind %d with fingerprints of %d bits", h.kind, h.fingerprints)
	case keys > 1<<62:
		in.Refuse("%d keys", keys)
	}
	return h
}

// parseTable reads a table of the given widths.
func parseTable(in *saved.Reader, h header, values, fingerprints int) *table {
	t := &table{values: values, fingerprints: fingerprints}
	levels := in.Word()
	single := h.kind == byte(Standard)+1
	if (levels == 0) != (h.keys == 0) || levels > maxLevels || single && levels > 1 {
		in.Refuse("%d levels for %d keys", levels, h.keys)
	}
	for i := uint64(0); i < levels && in.Err() == nil; i++ {
		t.levels = append(t.levels, parseLevel(in, uint64(t.width()), i+1 < levels))
	}
	return t
}

func parseLevel(in *saved.Reader, width uint64, bumps bool) (l level) {
	// A bucket has two words a column or more; this also keeps the products
	// below from overflowing.
	if l.buckets = in.Word(); l.buckets == 0 || l.buckets > in.Left()/8 {
		in.Refuse("%d buckets in %d bytes", l.buckets, in.Left())
		return l
	}
	before := uint64(l.shards())
	if bumps {
		before = codeWords(l.buckets)
	}
	numbers := in.Words(before)
	l.words = in.Words(l.slots() / 64 * width)
	if in.Err() != nil {
		return l
	}
	if !bumps {
		l.salts = l.newSalts()
		for i, n := range numbers {
			if n > maxSalt {
				in.Refuse("salt %d", n)
			}
			l.salts[i].number = n
		}
		return l
	}
	l.codes = numbers
	if used := l.buckets % codesPerWord * 2; used != 0 && l.codes[before-1]>>used != 0 {
		in.Refuse("codes of buckets that do not exist")
	}
	return l
}

// MarshalBinary returns the saved form, which UnmarshalBinary reads.
func (r *Retrieval) MarshalBinary() ([]byte, error) { return r.marshal(kindRetrieval) }

// UnmarshalBinary reads what MarshalBinary returned. It refuses anything else
// with an error that wraps ErrFormat, without more memory than data has. It
// keeps no part of data.
func (r *Retrieval) UnmarshalBinary(data []byte) error {
	t, _, err := parse(data, kindRetrieval, kindRetrieval)
	if err == nil {
		r.tables = t
	}
	return err
}

// MarshalBinary returns the saved form, which UnmarshalBinary reads.
func (f *Filter) MarshalBinary() ([]byte, error) { return f.marshal(byte(f.kind) + 1) }

// UnmarshalBinary is that of a Retrieval, for filters.
func (f *Filter) UnmarshalBinary(data []byte) error {
	t, kind, err := parse(data, 1, byte(kinds))
	if err == nil {
		*f = Filter{Kind(kind - 1), t}
	}
	return err
}

// MarshalBinary returns the saved form, which UnmarshalBinary reads.
func (m *Map) MarshalBinary() ([]byte, error) { return m.marshal(kindMap) }

// UnmarshalBinary is that of a Retrieval, for maps.
func (m *Map) UnmarshalBinary(data []byte) error {
	t, _, err := parse(data, kindMap, kindMap)
	if err == nil {
		m.tables = t
	}
	return err
}
