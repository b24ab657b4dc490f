package ribbon

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/bfield/keyed"
)

// keyList is the keys of a build.
type keyList struct{ keyed.List }

// source returns the hashes with the values; nil stands for zeros.
func (k keyList) source(seed uint64, values []uint64) source {
	return func(into []entry, from int) {
		for i := range into {
			into[i] = entry{hash: k.At(from + i).Hash(seed)}
			if values != nil {
				into[i].value = values[from+i]
			}
		}
	}
}

// seeds is how many seeds a build tries before it gives up on keys that differ
// and have one hash. Of 10^9 keys, two have one in 2.7 % of all cases, and the
// seeds are independent.
const seeds = 12

// build calls try with seed after seed until no two keys that differ have one
// hash and different values.
func (k keyList) build(seed uint64, values []uint64, try func(seed uint64) error) error {
	var err error
	for range seeds {
		if err = try(seed); !errors.Is(err, errContradiction) {
			break
		}
		if err := k.contradiction(seed, values); err != nil {
			return err
		}
		seed += mulCoefficient
	}
	if err != nil {
		return fmt.Errorf("ribbon: %d keys: %w (%w)", k.Len(), ErrUnsolvable, err)
	}
	return nil
}

// contradiction looks for equal keys with different values.
func (k keyList) contradiction(seed uint64, values []uint64) error {
	type place struct {
		hash  uint64
		index int
	}
	places := make([]place, k.Len())
	for i := range places {
		places[i] = place{k.At(i).Hash(seed), i}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.index, b.index))
	})
	// One key may be given often. It is compared with the first of each key of
	// its hash, not with all before it.
	var firsts []int
	for i, p := range places {
		if i > 0 && p.hash != places[i-1].hash {
			firsts = firsts[:0]
		}
		at := slices.IndexFunc(firsts, func(first int) bool { return k.At(first).Equal(k.At(p.index)) })
		if at < 0 {
			firsts = append(firsts, p.index)
			continue
		}
		if a, b := firsts[at], p.index; values[a] != values[b] {
			return fmt.Errorf("ribbon: %w: keys %d and %d are equal, their values are %d and %d", ErrContradiction, a, b, values[a], values[b])
		}
	}
	return nil
}
