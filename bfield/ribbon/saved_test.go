package ribbon

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/bfield/internal/fieldtest"
	"github.com/syncd-io/syncd/bfield/keyed"
)

// structure is what each of the three types can do.
type structure interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// samples are small structures of all kinds, from fixed keys.
func samples(t testing.TB) map[string]structure {
	hashes, values := make([]uint64, 4000), make([]uint64, 4000)
	for i := range hashes {
		hashes[i] = uint64(i) * mulCoefficient
		values[i] = rehash(uint64(i), 1)
	}
	narrow := make([]uint64, len(values))
	for i, v := range values {
		narrow[i] = v >> 59
	}
	all := map[string]structure{}
	add := func(name string, s structure, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		all[name] = s
	}
	r, err := BuildRetrieval(Config{ValueBits: 5, Seed: 1}, keyed.Numbers(hashes), narrow)
	add("retrieval", r, err)
	r, err = BuildRetrieval(Config{ValueBits: 5}, keyed.List{}, nil)
	add("retrieval of nothing", r, err)
	m, err := BuildMap(Config{ValueBits: 5, FingerprintBits: 4, Seed: 2}, keyed.Numbers(hashes[:50]), narrow[:50])
	add("map", m, err)
	m, err = BuildMap(Config{ValueBits: 64, FingerprintBits: 9, Seed: 3}, keyed.Numbers(hashes[:50]), values[:50])
	add("wide map", m, err)
	for kind := range Kind(kinds) {
		f, err := BuildFilter(Config{Filter: kind, FingerprintBits: 6, Seed: 4}, keyed.Numbers(hashes))
		add(kind.String(), f, err)
	}
	return all
}

var forms = fieldtest.Forms[structure]{
	Samples: samples, Err: ErrFormat,
	Golden: map[string]uint64{
		"retrieval":            0x01205f5860b4dfe2,
		"retrieval of nothing": 0xa209d2568c488156,
		"map":                  0xdd1d24176652f8e7,
		"wide map":             0x219381132bfd38c2,
		"standard":             0x98ca553140e4ca71,
		"bumped":               0x8973b0ab9652f62a,
	},
	Read: func(data []byte) (structure, error) {
		var err error
		for _, s := range []structure{new(Retrieval), new(Map), new(Filter)} {
			if err = s.UnmarshalBinary(data); err == nil {
				return s, nil
			}
		}
		return nil, err
	},
	Ask: askAll,
}

func TestGolden(t *testing.T)    { forms.Test(t) }
func FuzzUnmarshal(f *testing.F) { forms.Fuzz(f) }

// A structure of one type does not load as another.
func TestTypesAreNotMixed(t *testing.T) {
	for name, s := range samples(t) {
		data, err := s.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		loads := 0
		for _, other := range []structure{new(Retrieval), new(Map), new(Filter)} {
			if err := other.UnmarshalBinary(data); err == nil {
				loads++
			} else if !errors.Is(err, ErrFormat) {
				t.Errorf("%s: error %v does not wrap ErrFormat", name, err)
			}
		}
		if loads != 1 {
			t.Errorf("%s: %d types load it", name, loads)
		}
	}
}

// askAll looks keys up in all ways.
func askAll(_ *testing.T, s structure) {
	hashes, values, found := make([]uint64, 100), make([]uint64, 100), make([]bool, 100)
	for i := range hashes {
		hashes[i] = uint64(i) * mulFingerprint
	}
	switch s := s.(type) {
	case *Retrieval:
		s.Lookup(keyed.Number(1))
		s.LookupBatch(keyed.Numbers(hashes), values)
		s.Stats()
	case *Map:
		s.Lookup(keyed.Number(1))
		s.LookupBatch(keyed.Numbers(hashes), values, found)
		s.Stats()
	case *Filter:
		s.Lookup(keyed.Number(1))
		s.LookupBatch(keyed.Numbers(hashes), found)
		s.Stats()
	}
}

// Each field of the header and of the first level, set to numbers that could
// overflow or lead out of the data, with a right checksum.
func TestHostileNumbers(t *testing.T) {
	for _, s := range samples(t) {
		data, err := s.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		for at := 8; at+8 <= min(len(data)-8, 24+24); at += 8 {
			old := binary.LittleEndian.Uint64(data[at:])
			for _, v := range []uint64{old + 1, old - 1, 0, 1, 17, 1 << 20, 1 << 31, 1 << 32, 1 << 56, 1 << 57, 1 << 60, 1<<62 + 1, 1 << 63, ^uint64(0), ^uint64(0) - 127, ^uint64(0) / 128} {
				hostile := bytes.Clone(data)
				binary.LittleEndian.PutUint64(hostile[at:], v)
				forms.Try(t, fieldtest.Resealed(hostile))
			}
		}
	}
}

// Codes behind those of the last bucket, and salts that are never tried, would
// give one structure two forms.
func TestOneFormOnly(t *testing.T) {
	all := samples(t)
	const firstWord = 24 + 8 + 8 // behind levels and buckets
	for name, at := range map[string]int{"retrieval": firstWord + 7, "standard": firstWord} {
		data, err := all[name].MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		data[at] |= 0xc0
		if forms.Try(t, fieldtest.Resealed(data)) {
			t.Errorf("%s: loads with byte %d set to %#x", name, at, data[at])
		}
	}
}

// The homogeneous filters of earlier versions are refused; their number is no other kind's.
func TestHomogeneousIsRefused(t *testing.T) {
	data, err := samples(t)["standard"].MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	data[5] = 0
	if err := new(Filter).UnmarshalBinary(fieldtest.Resealed(data)); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "homogeneous") {
		t.Errorf("error %v", err)
	}
}
