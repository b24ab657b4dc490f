package nested

import (
	"cmp"
	"math"
	"slices"
)

// mostLayers bounds the fields of a chain; each look-up of a rare value asks them all.
const mostLayers = 8

// layer is what one field of the chain is for.
type layer struct {
	keys     uint64  // in it
	first    int     // its value 0 is that of this rank
	frequent int     // how many values have codes; the next one says "next"
	last     bool    // it has codes for all that are left, and not for "next"
	alpha    float64 // its rate of false positives
}

// codes is how many values its field has.
func (l layer) codes() uint64 {
	if l.last {
		return uint64(l.frequent)
	}
	return uint64(l.frequent) + 1
}

// ranked returns the values by how often they come, the most frequent first, and
// these frequencies. Ties go by value, so that a build is a function of its input.
func ranked(values []uint64) (order, counts []uint64) {
	frequencies := map[uint64]uint64{}
	for _, v := range values {
		frequencies[v]++
	}
	for v := range frequencies {
		order = append(order, v)
	}
	slices.SortFunc(order, func(a, b uint64) int {
		return cmp.Or(cmp.Compare(frequencies[b], frequencies[a]), cmp.Compare(a, b))
	})
	for _, v := range order {
		counts = append(counts, frequencies[v])
	}
	return order, counts
}

// plan cuts the ranked values into layers. At each depth it takes as many frequent
// values as cost least if one field were to hold the rest. Then it plans the rest.
func plan(counts []uint64, alpha float64) (layers []layer) {
	first, keys := 0, uint64(0)
	for _, c := range counts {
		keys += c
	}
	for {
		left := len(counts) - first
		best := layer{keys: keys, first: first, frequent: left, last: true, alpha: alpha}
		least, inner, rest := float64(keys)*bits(left, alpha), 0.0, uint64(0)
		held := uint64(0)
		for f := 1; f < left && len(layers)+1 < mostLayers; f++ {
			held += counts[first+f-1]
			rho := float64(keys-held) / float64(keys)
			a1 := min(rho*float64(f)/(1-rho), mostAlpha)
			a0 := min(alpha*float64(f+1)/(float64(f)+a1), mostAlpha)
			if cost := float64(keys)*bits(f+1, a0) + float64(keys-held)*bits(left-f, a1); cost < least {
				best = layer{keys: keys, first: first, frequent: f, alpha: a0}
				least, inner, rest = cost, a1, keys-held
			}
		}
		layers = append(layers, best)
		if best.last {
			return layers
		}
		first, keys, alpha = first+best.frequent, rest, inner
	}
}

// mostAlpha is the highest rate that a field can be planned for.
const mostAlpha = 0.5

// bits is what a key costs in a field: −log2(α/θ)/ln 2, the paper's size for κ = 1.
// With κ above it is a few per cent more, for many values and for few.
func bits(values int, alpha float64) float64 {
	return math.Log2(float64(values)/alpha) / math.Ln2
}
