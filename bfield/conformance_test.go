package bfield

import (
	"testing"

	"github.com/syncd-io/syncd/bfield/internal/fieldtest"
	"github.com/syncd-io/syncd/bfield/keyed"
)

// shape gives all four numbers, so that no test waits for a plan.
func shape(values uint64, nu, kappa, hashes int, perKey float64) Config {
	return Config{Values: values, Nu: nu, Kappa: kappa, Hashes: hashes, CellsPerKey: perKey}
}

// shapes cover κ of 1 to 4, windows of one load and of two, codes by table and
// by computation, values that fill the codes and such that do not.
var shapes = map[string]Config{
	"one bit":    shape(16, 16, 1, 12, 17.31),
	"two bits":   shape(256, 24, 2, 8, 11.59),
	"three bits": shape(1140, 20, 3, 7, 9.57),
	"four bits":  shape(1001, 14, 4, 5, 7.01),
	"one load":   shape(1596, 57, 2, 10, 14.5),
	"a filter":   shape(1, 1, 1, 8, 11.55),
}

// built adapts a Field to the conformance suite.
type built struct{ *Field }

func (b built) Lookup(key keyed.Key) (uint64, bool) {
	v, a := b.Field.Lookup(key)
	return v, a == Found
}

func (b built) LookupBatch(keys keyed.List, values []uint64, found []bool) {
	answers := make([]Answer, keys.Len())
	b.Field.LookupBatch(keys, values, answers)
	for i, a := range answers {
		found[i] = a == Found
	}
}

func load(data []byte) (fieldtest.Field, error) {
	f := new(Field)
	return built{f}, f.UnmarshalBinary(data)
}

func TestConformance(t *testing.T) {
	for name, c := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := NewPlan(c)
			if err != nil {
				t.Fatal(err)
			}
			alpha := p.FalsePositive()
			suite := fieldtest.Suite{
				Values: c.Values, FalsePositive: [2]float64{0.97 * alpha, 1.03 * alpha}, Contradiction: ErrContradiction, Load: load,
				Build: func(in fieldtest.Input) (fieldtest.Field, error) {
					c := c
					c.Keys, c.Seed, c.Workers = uint64(in.Len()), in.Seed, in.Workers
					f, err := Build(c, in.List(), in.Values)
					return built{f}, err
				},
				// Parallel work begins at 2·16384 keys. In smaller fields the part
				// of ones varies, and α with it.
				Large: 36_000,
			}
			if name != "two bits" && name != "one load" {
				suite.Large, suite.FalsePositive = 6000, [2]float64{0.75 * alpha, 1.33 * alpha}
			}
			fieldtest.Run(t, suite)
		})
	}
}
