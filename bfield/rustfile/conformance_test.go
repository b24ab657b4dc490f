package rustfile_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/syncd-io/syncd/bfield"
	"github.com/syncd-io/syncd/bfield/internal/fieldtest"
	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/bfield/rustfile"
)

// adapted is a Field of the suite.
type adapted struct{ *rustfile.Field }

func (f adapted) Lookup(key keyed.Key) (uint64, bool) {
	v, a := f.Field.Lookup(key.AppendTo(nil))
	return v, a == bfield.Found
}

func (f adapted) LookupBatch(keys keyed.List, values []uint64, found []bool) {
	answers := make([]bfield.Answer, keys.Len())
	f.Field.LookupBatch(bytesOf(keys), values, answers)
	for i, a := range answers {
		found[i] = a == bfield.Found
	}
}

func bytesOf(keys keyed.List) (of [][]byte) {
	for i := range keys.Len() {
		of = append(of, keys.At(i).AppendTo(nil))
	}
	return of
}

// MarshalBinary puts the files one after the other, each behind its length.
func (f adapted) MarshalBinary() (b []byte, err error) {
	for _, file := range f.Files() {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(file)))
		b = append(b, file...)
	}
	return b, nil
}

func loaded(data []byte) (fieldtest.Field, error) {
	var files [][]byte
	for len(data) >= 8 {
		n := binary.LittleEndian.Uint64(data)
		files, data = append(files, data[8:8+n]), data[8+n:]
	}
	f, err := rustfile.FieldOf(files...)
	return adapted{f}, err
}

func TestConformance(t *testing.T) {
	const bitsPerKey, large = 24, 20_000
	plan, err := bfield.NewPlan(bfield.Config{Keys: large, Values: 276, Nu: 24, Kappa: 2, Hashes: 8, CellsPerKey: bitsPerKey / 2})
	if err != nil {
		t.Fatal(err)
	}
	alpha := plan.FalsePositive()
	fieldtest.Run(t, fieldtest.Suite{
		Values: 276, Contradiction: bfield.ErrContradiction, Large: large, Load: loaded, Unchecked: true,
		// A key that the first array leaves open is taken for a stranger by the next
		// alone, and the places are an arithmetic progression: the rate is higher.
		FalsePositive: [2]float64{0.8 * alpha, 1.6 * alpha},
		Build: func(in fieldtest.Input) (fieldtest.Field, error) {
			c := rustfile.Config{Size: max(2048, bitsPerKey*uint64(in.Len())), Hashes: 8, Nu: 24, Kappa: 2, Arrays: 6, Scale: 0.3, LeastScale: 0.25}
			f, err := rustfile.Build(c, bytesOf(in.List()), in.Values)
			// Of 4,000 fields of 128 or 500 keys one has a key that is indeterminate in all arrays.
			for tries := 1; errors.Is(err, rustfile.ErrIndeterminate) && tries < 8; tries++ {
				c.Size += 1024
				f, err = rustfile.Build(c, bytesOf(in.List()), in.Values)
			}
			return adapted{f}, err
		},
	})
}
