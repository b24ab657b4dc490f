package cuckoo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/bfield/internal/fieldtest"
	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/internal/seeded"
)

// What is saved is a format: other versions and processors read it.
func TestGoldenFormat(t *testing.T) {
	grown := func(c MapConfig, n uint64) *Map[uint64, uint64] { // it grows a little
		m := newMap(t, c)
		for i := range n {
			if err := m.Set(i*i*0x9e3779b97f4a7c15&keyMask, i); err != nil {
				t.Fatal(err)
			}
		}
		return m
	}
	table, err := New(Config{ValueBits: 10, Hashes: 3, Slots: 2, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(1500) {
		if err := table.Insert(keyed.Number(i), i&1023); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range []struct {
		name string
		from interface{ MarshalBinary() ([]byte, error) }
		size int
		sum  uint64
	}{
		{"map of 8,192 buckets at first", grown(MapConfig{Seed: 1}, 50_000), 631296, 0xe779a9763459beda},
		{"map of 11,174 at first", grown(MapConfig{Seed: 1, Keys: 60_000}, 70_000), 883776, 0xc82deaa46a570f7c},
		{"table", table, 5696, 0xa073a02cbf01f53f},
	} {
		data, err := v.from.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if sum := xxh3.Hash(data); len(data) != v.size || sum != v.sum {
			t.Errorf("%s: %d bytes of hash %#x, want %d and %#x", v.name, len(data), sum, v.size, v.sum)
		}
	}
}

// samples are a small Map and a small Table, both with entries in the stash.
func samples(t testing.TB) (mapBytes, tableBytes []byte) {
	m := newMap(t, MapConfig{Seed: 5})
	for _, k := range crowd(t, &m.exact, 2*mapSlots+2) {
		if err := m.Set(k, k); err != nil {
			t.Fatal(err)
		}
	}
	table, err := New(Config{ValueBits: 6, FalsePositive: .25, Slots: 1, Seed: 6, Fixed: true, Search: minSearch})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for table.Stats().Stash < 3 {
		k := r.Uint64()
		if looksTaken(table, k) {
			continue
		}
		if err := table.Insert(keyed.Number(k), r.Uint64()&63); err != nil {
			t.Fatal(err)
		}
	}
	mapBytes, _ = m.MarshalBinary()
	tableBytes, _ = table.MarshalBinary()
	return mapBytes, tableBytes
}

var mapForms = fieldtest.Forms[*Map[uint64, uint64]]{
	Read: parseMap[uint64, uint64], Err: ErrFormat,
	// It holds as many keys as it says.
	Ask: func(t *testing.T, m *Map[uint64, uint64]) {
		twin := map[uint64]uint64{}
		for k, v := range m.All() {
			twin[k] = v
		}
		if err := compare(m, twin); err != nil {
			t.Fatal(err)
		}
		for k := range uint64(100) {
			if err := m.Set(k<<40|k, k); err != nil && !errors.Is(err, ErrCrowded) {
				t.Fatal(err)
			}
			m.Delete(k)
		}
	},
}

var tableForms = fieldtest.Forms[*Table]{
	Read: parseTable, Err: ErrFormat,
	Ask: func(_ *testing.T, table *Table) {
		for k := range uint64(100) {
			_ = table.Insert(keyed.Number(k), k&1)
			table.Lookup(keyed.Number(k))
			table.Delete(keyed.Number(k), 0)
		}
	},
}

// Each word of the head, and bytes all over, changed under a right checksum.
func TestForgedBytes(t *testing.T) {
	r := seeded.New(t)
	mapBytes, tableBytes := samples(t)
	if !mapForms.Try(t, mapBytes) || !tableForms.Try(t, tableBytes) {
		t.Fatal("the samples are refused")
	}
	for _, v := range []struct {
		data []byte
		try  func(*testing.T, []byte) bool
		head int
	}{{mapBytes, mapForms.Try, 7 * 8}, {tableBytes, tableForms.Try, 13 * 8}} {
		change := func(at int) []byte {
			b := bytes.Clone(v.data)
			b[at] ^= 1 << r.IntN(8)
			return b
		}
		for at := range v.head {
			v.try(t, fieldtest.Resealed(change(at)))
			if v.try(t, change(at)) {
				t.Fatalf("byte %d is not under the checksum", at)
			}
		}
		tail := len(v.data) - 300
		for range 30 {
			v.try(t, fieldtest.Resealed(change(r.IntN(tail))))
			v.try(t, fieldtest.Resealed(change(tail+r.IntN(300))))
		}
		for range 60 {
			if cut := r.IntN(len(v.data)); v.try(t, v.data[:cut]) || v.try(t, fieldtest.Resealed(v.data[:cut])) {
				t.Fatalf("%d bytes of %d are a table", cut, len(v.data))
			}
		}
	}
}

// Heads that promise 2^31 buckets come with no bucket: memory is for what was
// read only.
func TestHeadChoosesNoAllocation(t *testing.T) {
	mapBytes, tableBytes := samples(t)
	big := binary.LittleEndian.AppendUint64(nil, maxBuckets)
	copy(mapBytes[3*8:], big)
	copy(mapBytes[4*8:], big)
	copy(tableBytes[2*8:], binary.LittleEndian.AppendUint64(nil, 1<<29))
	copy(tableBytes[9*8:], big)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 10 {
		mapForms.Try(t, fieldtest.Resealed(mapBytes[:1000]))
		tableForms.Try(t, fieldtest.Resealed(tableBytes[:200]))
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 10<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
}

// Inputs are patches of three bytes on a sample: where, in 1/65,536 of its
// length, and what to flip. So they stay small, and the checksum is right.
func patched(sample, patches []byte) []byte {
	data := bytes.Clone(sample)
	for ; len(patches) >= 3; patches = patches[3:] {
		at := int(binary.LittleEndian.Uint16(patches))
		if at >= 256 { // the first 256 bytes are named one by one
			at = 256 + (at-256)*(len(data)-256)>>16
		}
		data[at] ^= patches[2]
	}
	return fieldtest.Resealed(data)
}

func FuzzReadMap(f *testing.F) {
	sample, _ := samples(f)
	f.Add([]byte{8, 0, 1, 24, 0, 1, 32, 0, 2})
	f.Add([]byte{40, 0, 7, 255, 255, 1})
	f.Fuzz(func(t *testing.T, patches []byte) {
		mapForms.Try(t, patches)
		mapForms.Try(t, patched(sample, patches))
	})
}

func FuzzReadTable(f *testing.F) {
	_, sample := samples(f)
	f.Add([]byte{16, 0, 1, 40, 0, 1, 72, 0, 2})
	f.Add([]byte{88, 0, 7, 255, 255, 1})
	f.Fuzz(func(t *testing.T, patches []byte) {
		tableForms.Try(t, patches)
		tableForms.Try(t, patched(sample, patches))
	})
}

// Operations on a Table of few buckets, against a Go map.
func FuzzTable(f *testing.F) {
	f.Add([]byte("insert, delete and insert again"), byte(3), byte(1))
	f.Fuzz(func(t *testing.T, ops []byte, shape, seed byte) {
		c := Config{
			Hashes: 2 + int(shape%3), Slots: 1 + int(shape/3%8), FalsePositive: 0x1p-8,
			ValueBits: 4, Seed: uint64(seed), Search: 64,
		}
		table, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		twin := map[uint64]uint64{}
		for ; len(ops) >= 2; ops = ops[2:] {
			// One operation is 64 keys, so that short inputs fill tables.
			for i := range uint64(64) {
				k, v := uint64(ops[0]&63)<<6|i, uint64(ops[1]&15)
				old, had := twin[k]
				switch {
				case ops[0]>>6 == 0 && had:
					if !table.Delete(keyed.Number(k), old) {
						t.Fatalf("%d is gone", k)
					}
					delete(twin, k)
				case ops[0]>>6 != 0 && !had && !looksTaken(table, k):
					if err := table.Insert(keyed.Number(k), v); err == nil {
						twin[k] = v
					} else if !errors.Is(err, ErrFull) && !errors.Is(err, ErrCrowded) {
						t.Fatal(err)
					}
				}
			}
		}
		for k, v := range twin {
			if got, ok := table.Lookup(keyed.Number(k)); !ok || got != v {
				t.Fatalf("%d has %d, %v, want %d", k, got, ok, v)
			}
		}
		if table.Len() != len(twin) {
			t.Fatalf("%d entries, want %d", table.Len(), len(twin))
		}
		savedTable(t, table)
	})
}
