package cuckoo

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
)

// MarshalBinary saves the Table.
func (t *Table) MarshalBinary() ([]byte, error) {
	o := output(tableMagic)
	c := t.config
	o.words(c.Seed, uint64(c.Keys), math.Float64bits(c.FalsePositive), uint64(c.ValueBits),
		uint64(c.Hashes), uint64(c.Slots), uint64(c.Search), flag(c.Fixed)|flag(c.Distinct)<<1, t.buckets,
		uint64(t.count), uint64(len(t.stash)), uint64(len(t.apart)))
	left := t.words()
	for _, chunk := range t.chunks {
		n := min(left, len(chunk)-1)
		o.words(chunk[:n]...)
		left -= n
	}
	for _, e := range t.stash {
		o.words(e.first, e.fingerprint, e.value)
	}
	for _, hash := range slices.Sorted(maps.Keys(t.apart)) {
		o.words(hash, t.apart[hash])
	}
	return o.sealed(), nil
}

// words are those that the slots fill.
func (t *Table) words() int { return (int(t.buckets)*t.slots*t.width + 63) / 64 }

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// UnmarshalBinary reads what MarshalBinary returned, or leaves the Table as it
// is and returns ErrFormat. Memory goes with the length of the data, whatever it says.
func (t *Table) UnmarshalBinary(data []byte) error {
	read, err := readTable(data)
	if err == nil {
		*t = *read
	}
	return err
}

func readTable(data []byte) (*Table, error) {
	in := newInput(data, tableMagic)
	var header [12]uint64
	for i := range header {
		header[i] = in.word()
	}
	if in.err != nil {
		return nil, in.err
	}
	for _, small := range header[3:7] { // ValueBits, Hashes, Slots, Search
		if small > maxSearch {
			return nil, errFormat("a shape of %d", small)
		}
	}
	flags, buckets, count, stash, apart := header[7], header[8], header[9], header[10], header[11]
	config := Config{
		Seed: header[0], Keys: int(min(header[1], math.MaxInt64)), FalsePositive: math.Float64frombits(header[2]),
		ValueBits: int(header[3]), Hashes: int(header[4]), Slots: int(header[5]), Search: int(header[6]),
		Fixed: flags&1 != 0, Distinct: flags&2 != 0,
	}
	s, err := config.plan()
	switch {
	case err != nil:
		return nil, errFormat("%v", err)
	case s.config != config || flags > 3:
		return nil, errFormat("its configuration is not filled in")
	case buckets < s.base || buckets > s.most:
		return nil, errFormat("%d buckets that were %d", buckets, s.base)
	case count > 1<<40 || stash > stashSize || apart > count || apart > 0 && !config.Distinct:
		return nil, errFormat("%d entries, %d in the stash and %d apart", count, stash, apart)
	}
	t := s.table(buckets)
	t.count = int(count)
	left := t.words()
	for left > 0 && in.err == nil {
		n := min(left, t.chunkWords()-1)
		chunk := make([]uint64, t.chunkWords())
		for at, block := 0, in.block(n); at < n; at++ {
			chunk[at] = binary.LittleEndian.Uint64(block[8*at:])
		}
		t.chunks = append(t.chunks, chunk)
		left -= n
	}
	for range stash {
		t.stash = append(t.stash, identity{in.word(), in.word(), in.word()})
	}
	ordered := true
	for i, last := uint64(0), uint64(0); i < apart && in.err == nil; i++ {
		hash, value := in.word(), in.word()
		if t.apart == nil {
			t.apart = map[uint64]uint64{}
		}
		ordered = ordered && (i == 0 || hash > last) && value>>t.value == 0
		t.apart[hash], last = value, hash
	}
	if err := in.end(); err != nil {
		return nil, err
	}
	if !ordered {
		return nil, errFormat("what is apart is out of order or range")
	}
	return t, t.check()
}

// check holds a table that was read to what Insert ensures. Each entry is
// where it belongs, and no two look the same.
func (t *Table) check() error {
	if used := int(t.buckets) * t.slots * t.width % 64; used > 0 {
		if last := t.chunks[len(t.chunks)-1]; last[(t.words()-1)%(len(last)-1)]>>used != 0 {
			return errFormat("bits follow the last bucket")
		}
	}
	count := len(t.stash) + len(t.apart)
	for b := range t.buckets {
		for i := range t.slots {
			s := t.slot(b, i)
			if s == 0 {
				continue
			}
			count++
			id, choice := t.identityOf(b, s)
			if id.fingerprint == 0 || choice >= t.hashes || t.bucketOf(id, choice) != b {
				return errFormat("an entry of bucket %d does not belong there", b)
			}
			for other := range t.hashes {
				if at, j := t.in(id, other); j >= 0 && (at != b || j != i || other != choice) {
					return errFormat("two entries of bucket %d and bucket %d look the same", b, at)
				}
			}
		}
	}
	for i, e := range t.stash {
		if e.first >= t.base || e.fingerprint == 0 || e.fingerprint>>t.fingerprint != 0 || e.value>>t.value != 0 {
			return errFormat("an entry of the stash is out of range")
		}
		stash := t.stash
		t.stash = stash[:i]
		_, twice := t.find(e)
		t.stash = stash
		if twice {
			return errFormat("an entry of the stash looks like another")
		}
	}
	if count != t.count {
		return errFormat("it has %d entries and says %d", count, t.count)
	}
	return nil
}
