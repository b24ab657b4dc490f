package cuckoo

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/zeebo/xxh3"
)

func newWide(t testing.TB, c MapConfig) *Wide[uint64, uint64] {
	t.Helper()
	m, err := NewWide[uint64, uint64](c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// compareWide holds a Wide to a plain map, by all ways to read it.
func compareWide(t *testing.T, m *Wide[uint64, uint64], twin map[uint64]uint64, strangers []uint64) {
	t.Helper()
	keys := append([]uint64(nil), strangers...)
	for k := range twin {
		keys = append(keys, k)
	}
	values, found := make([]uint64, len(keys)), make([]bool, len(keys))
	hits := m.GetBatch(keys, values, found)
	for i, k := range keys {
		want, there := twin[k]
		if v, ok := m.Get(k); v != want || ok != there || values[i] != want || found[i] != there {
			t.Fatalf("key %x is %d, %v; in a batch %d, %v; want %d, %v", k, v, ok, values[i], found[i], want, there)
		}
	}
	n := 0
	for k, v := range m.All() {
		if want, ok := twin[k]; !ok || want != v {
			t.Fatalf("All yields %x with %d, want %d, %v", k, v, want, ok)
		}
		n++
	}
	if n != len(twin) || m.Len() != n || hits < n || m.Stats().Len != n {
		t.Fatalf("%d keys, Len %d, %d hits; want %d", n, m.Len(), hits, len(twin))
	}
}

// Random operations beside a plain map; many keys share their 48 bits with
// others, as none would by chance.
func TestWideTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	m := newWide(t, MapConfig{Seed: 9})
	twin := map[uint64]uint64{}
	var keys []uint64
	for range 5000 {
		low, high := r.Uint64()&keyMask, r.Uint64N(1<<16)
		for range 1 + r.IntN(3) {
			k := m.whole(low, high)
			if l, h := m.split(k); l != low || h != high {
				t.Fatalf("%x, %x became %x, %x", low, high, l, h)
			}
			keys = append(keys, k)
			high = (high + 1) & (1<<16 - 1)
		}
	}
	for range 60_000 {
		k := keys[r.IntN(len(keys))]
		if r.IntN(3) == 0 {
			_, there := twin[k]
			if m.Delete(k) != there {
				t.Fatalf("deleting %x, which is there: %v", k, there)
			}
			delete(twin, k)
			continue
		}
		twin[k] = r.Uint64N(1 << 32)
		if err := m.Set(k, twin[k]); err != nil {
			t.Fatal(err)
		}
	}
	compareWide(t, m, twin, keys)
	if len(m.twins) < 1000 {
		t.Errorf("only %d keys share their bits with others", len(m.twins))
	}
	data, err := m.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var again Wide[uint64, uint64]
	if err := again.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	compareWide(t, &again, twin, keys)
	if err := m.Set(1, 1<<32); !errors.Is(err, ErrRange) {
		t.Errorf("a value of 33 bits: %v", err)
	}
}

func sampleWide(t testing.TB) []byte {
	m := newWide(t, MapConfig{Seed: 3})
	for i := range uint64(40) {
		if err := m.Set(m.whole(i/2*0x9e3779b97f4a&keyMask, i), i); err != nil {
			t.Fatal(err)
		}
	}
	data, err := m.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestGoldenWide(t *testing.T) {
	data := sampleWide(t)
	if sum := xxh3.Hash(data); len(data) != 524696 || sum != 0x75f7be83b5ab21fd {
		t.Errorf("%d bytes of hash %#x", len(data), sum)
	}
}

// resealedWide gives both parts their checksums.
func resealedWide(data []byte) []byte {
	if len(data) < 24 {
		return data
	}
	n := uint64(0)
	for i, b := range data[8:16] {
		n |= uint64(b) << (8 * i)
	}
	end := 16 + 16*n
	if n > 1<<20 || end+8 > uint64(len(data)) {
		return data
	}
	return append(resealed(data[:end+8]), resealed(data[end+8:])...)
}

// Bytes that are accepted are a consistent Wide.
func tryWide(t *testing.T, data []byte) (accepted bool) {
	m := new(Wide[uint64, uint64])
	if err := m.UnmarshalBinary(data); err != nil {
		if !errors.Is(err, ErrFormat) {
			t.Fatalf("error %v", err)
		}
		return false
	}
	again, err := m.MarshalBinary()
	if err != nil || !bytes.Equal(again, data) {
		t.Fatalf("%d bytes were read and saved as %d others; %v", len(data), len(again), err)
	}
	twin := map[uint64]uint64{}
	for k, v := range m.All() {
		twin[k] = v
	}
	compareWide(t, m, twin, nil)
	return true
}

func TestWideDamage(t *testing.T) {
	data := sampleWide(t)
	if !tryWide(t, data) {
		t.Fatal("what was saved is refused")
	}
	for at := 0; at < len(data); at += 1 + at/50 {
		damaged := bytes.Clone(data)
		damaged[at] ^= 1 << (at % 8)
		if tryWide(t, damaged) {
			t.Fatalf("a bit of byte %d was flipped, and nothing noticed", at)
		}
		tryWide(t, resealedWide(damaged))
		if tryWide(t, data[:at]) {
			t.Fatalf("the first %d bytes are accepted", at)
		}
	}
	if tryWide(t, append(bytes.Clone(data), 0)) {
		t.Fatal("a byte behind is accepted")
	}
}

func FuzzWide(f *testing.F) {
	f.Add(sampleWide(f))
	f.Fuzz(func(t *testing.T, data []byte) { tryWide(t, resealedWide(data)) })
}
