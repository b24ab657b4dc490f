package cuckoo

import (
	"math"

	"github.com/syncd-io/syncd/bfield/internal/saved"
)

// tableFormat is as mapFormat.
var tableFormat = saved.Format{Magic: "cktab\x00\x00\x01", Err: ErrFormat}

// MarshalBinary saves the Table.
func (t *Table) MarshalBinary() ([]byte, error) {
	c, fixed := t.config, uint64(0)
	if c.Fixed {
		fixed = 1
	}
	b := saved.Append([]byte(tableFormat.Magic), c.Seed, uint64(c.Keys), math.Float64bits(c.FalsePositive), uint64(c.ValueBits),
		uint64(c.Hashes), uint64(c.Slots), uint64(c.Search), fixed, t.buckets,
		uint64(t.count), uint64(len(t.stash)), 0)
	left := t.words()
	for _, chunk := range t.chunks {
		n := min(left, len(chunk)-1)
		b = saved.Append(b, chunk[:n]...)
		left -= n
	}
	for _, e := range t.stash {
		b = saved.Append(b, e.first, e.fingerprint, e.value)
	}
	return saved.Sealed(b), nil
}

// words are those that the slots fill.
func (t *Table) words() int { return (int(t.buckets)*t.slots*t.width + 63) / 64 }

// UnmarshalBinary reads what MarshalBinary returned, or leaves the Table as it
// is and returns ErrFormat. Memory goes with the length of the data, whatever it says.
func (t *Table) UnmarshalBinary(data []byte) error {
	return saved.Unmarshal(t, data, parseTable)
}

func parseTable(data []byte) (*Table, error) {
	in := tableFormat.Read(data)
	var header [12]uint64
	for i := range header {
		header[i] = in.Word()
	}
	for _, small := range header[3:7] { // ValueBits, Hashes, Slots, Search
		if small > maxSearch {
			return nil, in.Errorf("a shape of %d", small)
		}
	}
	fixed, buckets, count, stash, zero := header[7], header[8], header[9], header[10], header[11]
	config := Config{
		Seed: header[0], Keys: int(min(header[1], math.MaxInt64)), FalsePositive: math.Float64frombits(header[2]),
		ValueBits: int(header[3]), Hashes: int(header[4]), Slots: int(header[5]), Search: int(header[6]),
		Fixed: fixed == 1,
	}
	t, err := config.table()
	switch {
	case err != nil:
		return nil, in.Errorf("%v", err)
	case t.config != config || fixed > 1:
		return nil, in.Errorf("its configuration is not filled in")
	case buckets < t.base || buckets > t.most:
		return nil, in.Errorf("%d buckets that were %d", buckets, t.base)
	case count > 1<<40 || stash > stashSize || zero != 0:
		return nil, in.Errorf("%d entries, %d in the stash, and %d behind", count, stash, zero)
	}
	t.grown(t.base, buckets)
	t.count = int(count)
	left := t.words()
	for left > 0 && in.Err() == nil {
		n := min(left, t.chunkWords()-1)
		chunk := make([]uint64, t.chunkWords())
		copy(chunk, in.Words(uint64(n)))
		t.chunks = append(t.chunks, chunk)
		left -= n
	}
	for range stash {
		t.stash = append(t.stash, identity{in.Word(), in.Word(), in.Word()})
	}
	if err := in.End(); err != nil {
		return nil, err
	}
	return t, t.check()
}

// check holds a table that was read to what Insert ensures. Each entry is
// where it belongs, and no two look the same.
func (t *Table) check() error {
	if used := int(t.buckets) * t.slots * t.width % 64; used > 0 {
		if last := t.chunks[len(t.chunks)-1]; last[(t.words()-1)%(len(last)-1)]>>used != 0 {
			return tableFormat.Errorf("bits follow the last bucket")
		}
	}
	count := len(t.stash)
	for b := range t.buckets {
		for i := range t.slots {
			s := t.slot(b, i)
			if s == 0 {
				continue
			}
			count++
			id, choice := t.identityOf(b, s)
			if id.fingerprint == 0 || choice >= t.hashes || t.bucketOf(id, choice) != b {
				return tableFormat.Errorf("an entry of bucket %d does not belong there", b)
			}
			for other := range t.hashes {
				if at, j := t.in(id, other); j >= 0 && (at != b || j != i || other != choice) {
					return tableFormat.Errorf("two entries of bucket %d and bucket %d look the same", b, at)
				}
			}
		}
	}
	for i, e := range t.stash {
		if e.first >= t.base || e.fingerprint == 0 || e.fingerprint>>t.fingerprint != 0 || e.value>>t.value != 0 {
			return tableFormat.Errorf("an entry of the stash is out of range")
		}
		stash := t.stash
		t.stash = stash[:i]
		_, twice := t.find(e)
		t.stash = stash
		if twice {
			return tableFormat.Errorf("an entry of the stash looks like another")
		}
	}
	if count != t.count {
		return tableFormat.Errorf("it has %d entries and says %d", count, t.count)
	}
	return nil
}
