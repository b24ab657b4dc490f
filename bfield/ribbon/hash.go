package ribbon

import "math/bits"

// The odd multipliers are rounded digits of well-known constants: the golden
// ratio's and those of Stafford's and Evensen's mixers. Any odd numbers without
// a pattern would do; these have been looked at by others.
const (
	mulLevel       = 0xbf58476d1ce4e5b9 // Stafford, "Better bit mixing", Mix13
	mulCoefficient = 0x9e3779b97f4a7c15 // 2^64/φ
	mulFingerprint = 0x9fb21c651e98df25 // Evensen, rrmxmx
)

// rehash gives the hash that a level works with, from that of the level before.
// For one salt it is a bijection, so two keys that differ never become one.
func rehash(h, salt uint64) uint64 {
	h = (h ^ salt) * mulLevel
	return h ^ h>>32
}

// position maps a hash to [0, n) in the order of the hashes. Keys sorted by
// hash are sorted by position (Lemire, "Fast random integer generation in an
// interval", 2019).
func position(h, n uint64) uint64 {
	hi, _ := bits.Mul64(h, n)
	return hi
}

// coefficients returns the row of a key: the w = 64 bits of its window. The
// first is always set, so that the window begins at the start position.
func coefficients(h uint64) uint64 {
	h *= mulCoefficient
	return h ^ h>>29 | 1
}

// fingerprint returns n bits of a key, 0 ≤ n ≤ 32. The shift before the
// multiplication makes it no linear function of the coefficients.
func fingerprint(h uint64, n int) uint64 {
	h = (h ^ h>>31) * mulFingerprint
	return h >> 1 >> (63 - n)
}
