package cuckoo

import "github.com/syncd-io/syncd/bfield/internal/saved"

// mapFormat is little-endian words of 64 bits. They are what the table is, how it was made,
// its buckets, the stash, and last the XXH3 of all before. The bytes are also checked
// against the rules of the table. So one that was read cannot differ in kind from one that
// was built.
var mapFormat = saved.Format{Magic: "ckmap\x00\x00\x01", Err: ErrFormat}

// MarshalBinary saves the Map: 64 bytes a bucket, and some.
func (m *Map[K, V]) MarshalBinary() ([]byte, error) {
	x := &m.exact
	b := append(make([]byte, 0, int(x.buckets)*64+16*stashSize+128), mapFormat.Magic...)
	b = saved.Append(b, x.seed, uint64(x.keys), x.base, x.buckets, uint64(x.count), uint64(len(x.stash)))
	for i := range x.buckets {
		words := x.line(i).words()
		b = saved.Append(b, words[:]...)
	}
	for _, e := range x.stash {
		b = saved.Append(b, e.key, e.value)
	}
	return saved.Sealed(b), nil
}

// UnmarshalBinary reads what MarshalBinary returned, or leaves the Map as it is
// and returns ErrFormat. Memory goes with the length of the data, whatever it says.
func (m *Map[K, V]) UnmarshalBinary(data []byte) error {
	return saved.Unmarshal(m, data, parseMap[K, V])
}

func parseMap[K, V ~uint64](data []byte) (*Map[K, V], error) {
	x, err := readExact(mapFormat.Read(data))
	if err != nil {
		return nil, err
	}
	return &Map[K, V]{*x}, nil
}

func readExact(in *saved.Reader) (*exact, error) {
	seed, keys, base, buckets, count, stash := in.Word(), in.Word(), in.Word(), in.Word(), in.Word(), in.Word()
	switch {
	case base < leastBase || base > maxBuckets || buckets < base || buckets > maxBuckets:
		return nil, in.Errorf("%d buckets that were %d", buckets, base)
	case keys > base*mapSlots || count > buckets*mapSlots+stashSize || stash > stashSize:
		return nil, in.Errorf("%d keys planned, %d there, %d of them in the stash", keys, count, stash)
	}
	x := &exact{spread: spreadOf(base, buckets), mixer: mixer{seed}, keys: int(keys), count: int(count)}
	for b := uint64(0); b < buckets; b += chunkBuckets {
		n := min(chunkBuckets, buckets-b)
		words := in.Words(8 * n)
		if in.Err() != nil {
			return nil, in.Err()
		}
		c := new(chunk)
		for i := range n {
			c[i] = lineOf([8]uint64(words[8*i:]))
		}
		x.chunks = append(x.chunks, c)
	}
	for range stash {
		x.stash = append(x.stash, entry{in.Word(), in.Word()})
	}
	if err := in.End(); err != nil {
		return nil, err
	}
	x.limit()
	return x, x.check()
}

// check holds a table that was read to what set makes sure of: each key is
// there once, where it belongs.
func (x *exact) check() error {
	count := len(x.stash)
	for b := range x.buckets {
		l := x.line(b)
		if l.rest[0]>>63|l.rest[1]>>63 != 0 {
			return mapFormat.Errorf("bucket %d has a bit that means nothing", b)
		}
		for i := range mapSlots {
			tag := l.tagAt(i)
			if tag == 0 && l.valueAt(i) == 0 {
				continue
			}
			count++
			p := place{b, tag}
			if number, choice := x.number(p); tag < 2 || number > keyMask || x.place(number, choice) != p {
				return mapFormat.Errorf("an entry of bucket %d does not belong there", b)
			}
			other := x.other(p)
			if l.find(tag) != i || x.line(other.bucket).find(other.tag) >= 0 {
				return mapFormat.Errorf("bucket %d has a key twice", b)
			}
		}
	}
	for i, e := range x.stash {
		if e.key > keyMask || e.value > keyMask {
			return mapFormat.Errorf("an entry of the stash is too wide")
		}
		stash := x.stash
		x.stash = stash[:i]
		_, twice := x.get(e.key)
		x.stash = stash
		if twice {
			return mapFormat.Errorf("a key of the stash is there twice")
		}
	}
	if count != x.count {
		return mapFormat.Errorf("it has %d keys and says %d", count, x.count)
	}
	return nil
}

// words is the line as it is saved: its fields in order, and in each the lower
// slots lower.
func (l *line) words() (w [8]uint64) {
	w[0] = l.tags
	w[1] = uint64(l.tags45) | uint64(l.value[0])<<32
	w[2] = uint64(l.value[1]) | uint64(l.value[2])<<32
	w[3] = uint64(l.value[3]) | uint64(l.value[4])<<32
	w[4] = uint64(l.value[5]) | uint64(l.upper[0])<<32 | uint64(l.upper[1])<<48
	w[5] = uint64(l.upper[2]) | uint64(l.upper[3])<<16 | uint64(l.upper[4])<<32 | uint64(l.upper[5])<<48
	w[6], w[7] = l.rest[0], l.rest[1]
	return w
}

func lineOf(w [8]uint64) line {
	return line{
		tags:   w[0],
		tags45: uint32(w[1]),
		value:  [...]uint32{uint32(w[1] >> 32), uint32(w[2]), uint32(w[2] >> 32), uint32(w[3]), uint32(w[3] >> 32), uint32(w[4])},
		upper:  [...]uint16{uint16(w[4] >> 32), uint16(w[4] >> 48), uint16(w[5]), uint16(w[5] >> 16), uint16(w[5] >> 32), uint16(w[5] >> 48)},
		rest:   [...]uint64{w[6], w[7]},
	}
}
