package nested

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/bfield"
	"github.com/syncd-io/syncd/bfield/internal/fieldtest"
	"github.com/syncd-io/syncd/bfield/internal/saved"
	"github.com/syncd-io/syncd/bfield/keyed"
)

func load(data []byte) (fieldtest.Field, error) { return FieldOf(data) }

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
func skewed(t testing.TB) *Field {
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
	return f
}

// twoLayers is a field whose shapes are fixed, as plans differ in their last bits between
// processors.
func twoLayers(t testing.TB) *Field {
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
	return f
}

var forms = fieldtest.Forms[*Field]{
	Samples: func(t testing.TB) map[string]*Field {
		return map[string]*Field{"two layers": twoLayers(t), "nothing": {}}
	},
	Golden: map[string]uint64{"two layers": 0x6d543b4e9ad6ed8, "nothing": 0x4d87476fbb53470c},
	Read:   FieldOf, Err: ErrFormat,
	Ask: func(_ *testing.T, f *Field) {
		var values [500]uint64
		var found [500]bool
		keys := make([]uint64, len(values))
		for i := range keys {
			keys[i] = uint64(i) * seedStep
		}
		f.LookupBatch(keyed.Numbers(keys), values[:], found[:])
		f.Stats()
	},
}

func TestGolden(t *testing.T)  { forms.Test(t) }
func FuzzFieldOf(f *testing.F) { forms.Fuzz(f) }

// Each count of the header, changed under a right checksum, is refused.
func TestForged(t *testing.T) {
	data, err := skewed(t).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	values, fields := binary.LittleEndian.Uint64(data[8:]), binary.LittleEndian.Uint64(data[16:])
	counts := uint64(24) + 8*values
	for _, at := range []uint64{8, 16, counts, counts + 8, counts + 16*(fields-1), counts + 16*(fields-1) + 8} {
		for _, change := range []uint64{1, 1<<64 - 1, 1 << 63, 1 << 40, 8} {
			forged := bytes.Clone(data[:len(data)-saved.SumSize])
			binary.LittleEndian.PutUint64(forged[at:], binary.LittleEndian.Uint64(forged[at:])+change)
			if _, err := FieldOf(saved.Sealed(forged)); !errors.Is(err, ErrFormat) {
				t.Errorf("the number at %d and %d more: %v", at, change, err)
			}
		}
	}
	// A value more in the first field's count and a value less in the last one's.
	forged := bytes.Clone(data[:len(data)-saved.SumSize])
	for at, change := range map[uint64]uint64{counts: 1, counts + 16*(fields-1): 1<<64 - 1} {
		binary.LittleEndian.PutUint64(forged[at:], binary.LittleEndian.Uint64(forged[at:])+change)
	}
	if _, err := FieldOf(saved.Sealed(forged)); !errors.Is(err, ErrFormat) {
		t.Errorf("fields of other numbers of codes: %v", err)
	}
}
