package main

import "math"

// found is the chance that GET finds a key that is there: one of its cells
// holds no other key (section 2.3). subtables is how many of the hashes are
// left.
func foundRate(keys, cells, subtables int) float64 {
	return 1 - math.Pow(1-math.Exp(-hashes*float64(keys)/float64(cells)), float64(subtables))
}

// recoveredRate is the part of the keys that is not in the 2-core, for many
// keys: with x the largest solution of x = 1 − e^(−kα·x^(k−1)), α keys a cell,
// a key is left if all its k cells are (Molloy 2004).
func recoveredRate(keys, cells int) float64 {
	alpha := float64(keys) / float64(cells)
	x := 1.0
	for range 100_000 {
		x = 1 - math.Exp(-hashes*alpha*math.Pow(x, hashes-1))
	}
	return 1 - math.Pow(x, hashes)
}

// poisonedRate is the paper's estimate (section 3) of the chance that a listing
// misses a valid key, because all its cells belong to keys with two values.
func poisonedRate(keys, cells, multi int) float64 {
	one := math.Pow(1-math.Exp(-hashes*float64(multi)/float64(cells)), hashes)
	return -math.Expm1(float64(keys-multi) * math.Log1p(-one))
}
