package nested

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/bfield"
	"github.com/syncd-io/syncd/bfield/internal/fieldtest"
	"github.com/syncd-io/syncd/bfield/keyed"
)

func load(data []byte) (fieldtest.Field, error) {
	f := new(Field)
	return f, f.UnmarshalBinary(data)
}

// The values of the suite are all alike frequent, and make one layer. Where its keys are
// numbers, nine keys of value 0 beside each make several.
func TestConformance(t *testing.T) {
	const alpha = 1.0 / 64
	fieldtest.Run(t, fieldtest.Suite{
		Values: 8, FalsePositive: [2]float64{0.5 * alpha, 1.2 * alpha}, Contradiction: bfield.ErrContradiction, Load: load,
		Build: func(in fieldtest.Input) (fieldtest.Field, error) {
			c := Config{FalsePositive: alpha, Seed: in.Seed, Workers: in.Workers}
			if in.Keys != nil {
				return Build(c, in.List(), in.Values)
			}
			keys, values := slices.Clone(in.Hashes), slices.Clone(in.Values)
			r := rand.New(rand.NewPCG(in.Seed, 1))
			for range 9 * len(keys) {
				keys, values = append(keys, r.Uint64()), append(values, 0)
			}
			return Build(c, keyed.Numbers(keys), values)
		},
	})
}

// skewed is a field of several layers, saved.
func skewed(t testing.TB) []byte {
	r := rand.New(rand.NewPCG(5, 6))
	keys, values := make([]uint64, 3000), make([]uint64, 3000)
	for i := range keys {
		keys[i] = r.Uint64()
		if r.IntN(10) == 0 {
			values[i] = r.Uint64N(50) << 40
		}
	}
	f, err := Build(Config{FalsePositive: 0.01, Seed: 3}, keyed.Numbers(keys), values)
	if err != nil || len(f.fields) < 2 {
		t.Fatal(err, len(f.fields))
	}
	data, err := f.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// What is saved is a format: other versions and processors read it. The fields have fixed
// shapes, as plans differ in their last bits between processors.
func TestGoldenFormat(t *testing.T) {
	f := &Field{order: []uint64{1 << 40, 7, 9}, layers: []layer{{frequent: 1}, {first: 1, frequent: 2, last: true}}}
	for i, c := range []bfield.Config{
		{Keys: 90, Values: 2, Nu: 16, Kappa: 1, Hashes: 6, CellsPerKey: 9, Seed: 3},
		{Keys: 30, Values: 2, Nu: 24, Kappa: 2, Hashes: 8, CellsPerKey: 11.5, Seed: 4},
	} {
		keys, values := make([]uint64, c.Keys), make([]uint64, c.Keys)
		for j := range keys {
			keys[j], values[j] = uint64(j), uint64(j%2)
			if i == 0 {
				values[j] = uint64(1 - min(j/30, 1)) // the first 30 are in the next field
			}
		}
		field, err := bfield.Build(c, keyed.Numbers(keys), values)
		if err != nil {
			t.Fatal(err)
		}
		f.fields = append(f.fields, field)
	}
	data, err := f.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if sum := xxh3.Hash(data); len(data) != 984 || sum != 0x6d543b4e9ad6ed8 {
		t.Errorf("%d bytes of hash %#x", len(data), sum)
	}
	read, err := FieldOf(data)
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := read.Lookup(keyed.Number(0)); v != 7 || !ok {
		t.Errorf("key 0 is %d, %v", v, ok)
	}
}

func TestFiles(t *testing.T) {
	f, err := FieldOf(skewed(t))
	if err != nil {
		t.Fatal(err)
	}
	open := func(path string) (encoding.BinaryMarshaler, error) { return Open(path) }
	fieldtest.Files(t, f, fieldtest.Kept{Open: open, Format: ErrFormat, Read: os.ReadFile, Write: os.WriteFile})
}

// Forged bytes, with a right checksum, are refused or are a field that saves as they are;
// none make a look-up panic.
func FuzzFieldOf(f *testing.F) {
	data := skewed(f)
	f.Add(data[:len(data)-sumSize])
	empty, err := new(Field).MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(empty[:len(empty)-sumSize])
	f.Fuzz(func(t *testing.T, body []byte) {
		data := binary.LittleEndian.AppendUint64(bytes.Clone(body), xxh3.Hash(body))
		field, err := FieldOf(data)
		if err != nil {
			return
		}
		if again, err := field.MarshalBinary(); err != nil || !bytes.Equal(again, data) {
			t.Fatalf("%d bytes are saved as %d others (%v)", len(data), len(again), err)
		}
		var values [500]uint64
		var found [500]bool
		keys := make([]uint64, len(values))
		for i := range keys {
			keys[i] = uint64(i) * seedStep
		}
		field.LookupBatch(keyed.Numbers(keys), values[:], found[:])
		field.Stats()
	})
}

// Each count of the header, changed under a right checksum, is refused.
func TestForged(t *testing.T) {
	data := skewed(t)
	values, fields := binary.LittleEndian.Uint64(data[8:]), binary.LittleEndian.Uint64(data[16:])
	counts := headerSize + 8*values
	for _, at := range []uint64{8, 16, counts, counts + 8, counts + 16*(fields-1), counts + 16*(fields-1) + 8} {
		for _, change := range []uint64{1, 1<<64 - 1, 1 << 63, 1 << 40, 8} {
			forged := bytes.Clone(data[:len(data)-sumSize])
			binary.LittleEndian.PutUint64(forged[at:], binary.LittleEndian.Uint64(forged[at:])+change)
			if _, err := FieldOf(binary.LittleEndian.AppendUint64(forged, xxh3.Hash(forged))); !errors.Is(err, ErrFormat) {
				t.Errorf("the number at %d and %d more: %v", at, change, err)
			}
		}
	}
	// A value more in the first field's count and a value less in the last one's.
	forged := bytes.Clone(data[:len(data)-sumSize])
	for at, change := range map[uint64]uint64{counts: 1, counts + 16*(fields-1): 1<<64 - 1} {
		binary.LittleEndian.PutUint64(forged[at:], binary.LittleEndian.Uint64(forged[at:])+change)
	}
	if _, err := FieldOf(binary.LittleEndian.AppendUint64(forged, xxh3.Hash(forged))); !errors.Is(err, ErrFormat) {
		t.Errorf("fields of other numbers of codes: %v", err)
	}
}
