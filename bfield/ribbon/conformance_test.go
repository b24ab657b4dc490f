package ribbon

import (
	"fmt"
	"math"
	"testing"

	"github.com/syncd-io/syncd/bfield/internal/fieldtest"
	"github.com/syncd-io/syncd/bfield/keyed"
)

// shards is enough keys for two shards, the last one not full.
const shards = shardSlots + shardSlots/4

// retrieval, asked for a value with an answer: always yes.
type retrieval struct{ *Retrieval }

func (r retrieval) Lookup(key keyed.Key) (uint64, bool) {
	return r.Retrieval.Lookup(key), true
}

func (r retrieval) LookupBatch(keys keyed.List, values []uint64, found []bool) {
	r.Retrieval.LookupBatch(keys, values)
	for i := range found {
		found[i] = true
	}
}

// filter, asked for a value: always 0.
type filter struct{ *Filter }

func (f filter) Lookup(key keyed.Key) (uint64, bool) { return 0, f.Filter.Lookup(key) }
func (f filter) LookupBatch(keys keyed.List, values []uint64, found []bool) {
	clear(values)
	f.Filter.LookupBatch(keys, found)
}

func buildAs(c Config, in fieldtest.Input) (fieldtest.Field, error) {
	c.Seed, c.Workers = in.Seed, in.Workers
	switch {
	case c.ValueBits == 0:
		f, err := BuildFilter(c, in.List())
		return filter{f}, err
	case c.FingerprintBits == 0:
		r, err := BuildRetrieval(c, in.List(), in.Values)
		return retrieval{r}, err
	default:
		return BuildMap(c, in.List(), in.Values)
	}
}

func loadAs(c Config, data []byte) (fieldtest.Field, error) {
	switch {
	case c.ValueBits == 0:
		f := new(Filter)
		return filter{f}, f.UnmarshalBinary(data)
	case c.FingerprintBits == 0:
		r := new(Retrieval)
		return retrieval{r}, r.UnmarshalBinary(data)
	default:
		m := new(Map)
		return m, m.UnmarshalBinary(data)
	}
}

func TestConformance(t *testing.T) {
	for _, c := range []Config{
		{ValueBits: 1},
		{ValueBits: 8},
		{ValueBits: 64},
		{ValueBits: 1, FingerprintBits: 1},
		{ValueBits: 16, FingerprintBits: 10},
		{ValueBits: 64, FingerprintBits: 32},
		{ValueBits: 8, FingerprintBits: 12, TwoLayers: true},
		{Filter: Bumped, FingerprintBits: 9, TwoLayers: true},
		{Filter: Standard, FingerprintBits: 8},
		{Filter: Bumped, FingerprintBits: 12},
	} {
		t.Run(fmt.Sprintf("%v of %d+%d bits, two layers %v", c.Filter, c.FingerprintBits, c.ValueBits, c.TwoLayers), func(t *testing.T) {
			low := math.Ldexp(1, -c.FingerprintBits)
			s := fieldtest.Suite{
				Build:         func(in fieldtest.Input) (fieldtest.Field, error) { return buildAs(c, in) },
				Load:          func(data []byte) (fieldtest.Field, error) { return loadAs(c, data) },
				Values:        1 << c.ValueBits,
				FalsePositive: [2]float64{low, low},
				Contradiction: ErrContradiction,
			}
			if c.ValueBits == 8 || c.FingerprintBits == 8 {
				s.Large = shards
			}
			fieldtest.Run(t, s)
		})
	}
}
