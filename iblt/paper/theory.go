package main

import "math"

// found is the chance that GET finds a key that is there (section 2.3). It
// does so if one of the key's cells holds no other key. subtables is how many
// of the hashes are left.
func foundRate(keys, cells, subtables int) float64 {
	return 1 - math.Pow(1-math.Exp(-hashes*float64(keys)/float64(cells)), float64(subtables))
}

// recoveredRate is the part of the keys that is not in the 2-core, for many
// keys (Molloy 2004). Let α be the keys a cell, and x the largest solution of
// x = 1 − e^(−kα·x^(k−1)). A cell of a key holds a further key of the 2-core
// with probability x. A key is in the 2-core if all its k cells do.
func recoveredRate(keys, cells int) float64 {
	alpha := float64(keys) / float64(cells)
	x := 1.0
	for range 100_000 {
		x = 1 - math.Exp(-hashes*alpha*math.Pow(x, hashes-1))
	}
	return 1 - math.Pow(x, hashes)
}

// poisonedRate is the paper's estimate (section 3) of the chance that a listing
// misses a valid key. It does so if all cells of the key belong to keys with
// two values.
func poisonedRate(keys, cells, multi int) float64 {
	one := math.Pow(1-math.Exp(-hashes*float64(multi)/float64(cells)), hashes)
	return -math.Expm1(float64(keys-multi) * math.Log1p(-one))
}
