package bloom

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/bfield/keyed"
)

func samples(t testing.TB) map[string]*Filter {
	all := map[string]*Filter{}
	for name, c := range map[string]Config{
		"blocked":            {Keys: 1000, BitsPerKey: 13, Seed: 1},
		"blocked of nothing": {BitsPerKey: 8},
		"classic":            {Keys: 1000, FalsePositive: 0.01, Kind: Classic, Seed: 2},
	} {
		f, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.Keys {
			f.Insert(keyed.Number(uint64(i) * mulPlaces))
		}
		all[name] = f
	}
	return all
}

// The checksums pin the format and every constant that places a key: a filter saved by
// one version must answer in the next.
func TestGoldenSavedForms(t *testing.T) {
	want := map[string]uint64{
		"blocked":            0x6d692d10aaa4ef8c,
		"blocked of nothing": 0x2337f376c94265a0,
		"classic":            0x1c2c28e1eb7c84a7,
	}
	for name, f := range samples(t) {
		data, err := f.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if got := xxh3.Hash(data); got != want[name] {
			t.Errorf("%q: %#x, want %#x", name, got, want[name])
		}
	}
}

// resealed replaces the checksum, so that what is before it is looked at.
func resealed(data []byte) []byte {
	if len(data) < sumSize {
		return data
	}
	body := bytes.Clone(data[:len(data)-sumSize])
	return binary.LittleEndian.AppendUint64(body, xxh3.Hash(body))
}

// Each field of the header, set to what no filter has, is refused by itself.
func TestHeadersThatCannotBe(t *testing.T) {
	good, _ := samples(t)["blocked"].MarshalBinary()
	if err := new(Filter).UnmarshalBinary(resealed(good)); err != nil {
		t.Fatal(err)
	}
	for at, value := range map[int]byte{0: 'X', 4: 2, 5: kinds, 6: 0, 7: 1, 23: 0xff} {
		bad := bytes.Clone(good)
		bad[at] = value
		if err := new(Filter).UnmarshalBinary(resealed(bad)); !errors.Is(err, ErrFormat) {
			t.Errorf("byte %d set to %d: %v", at, value, err)
		}
	}
	for _, bad := range [][]byte{good[:headerSize+sumSize], good[:len(good)-8], good[:len(good)-1]} {
		if err := new(Filter).UnmarshalBinary(resealed(bad)); !errors.Is(err, ErrFormat) {
			t.Errorf("%d of %d bytes: %v", len(bad), len(good), err)
		}
	}
}

// Whatever bytes load, with a right checksum too: look-ups stay within their memory, and
// the filter is saved as the same bytes.
func FuzzUnmarshal(f *testing.F) {
	for _, s := range samples(f) {
		data, _ := s.MarshalBinary()
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = resealed(data)
		s := new(Filter)
		if err := s.UnmarshalBinary(data); err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("error %v does not wrap ErrFormat", err)
			}
			return
		}
		var found [100]bool
		keys := make([]uint64, len(found))
		for i := range keys {
			keys[i] = uint64(i) * mulStep
		}
		s.LookupBatch(keyed.Numbers(keys), found[:])
		for i, k := range keys {
			if s.Lookup(keyed.Number(k)) != found[i] {
				t.Fatalf("key %d: alone %v, in a batch %v", i, !found[i], found[i])
			}
		}
		s.Stats()
		if again, _ := s.MarshalBinary(); !bytes.Equal(again, data) {
			t.Fatal("it is saved as other bytes")
		}
	})
}
