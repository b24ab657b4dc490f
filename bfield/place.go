package bfield

import (
	"math/bits"

	"github.com/syncd-io/syncd/bfield/keyed"
)

// key is what is left of a key: 128 bits under the field's seed.
type key struct{ a, b uint64 }

// seed turns keys into numbers.
type seed uint64

func (s seed) keyOf(k keyed.Key) key {
	a, b := k.Hash128(uint64(s))
	return key{a, b}
}

// The i-th window of a key begins at the place that b + a·multiplier[i] stands
// for. That is a number below 2^64, which is scaled to the number of places.
//
// The paper prints h_i = h_a × ((i−1) × h_b), which is 0 for the first. It must
// mean h_a + (i−1)·h_b. But the places of that are an arithmetic progression.
// Two keys with nearly the same step, and starts less than ν apart, share all
// windows but for a shift. Small fields with a low α feel it. Planned for
// 2^-20, 3,000 keys had 3.8 times that rate and 10,000 keys 1.7 times
// (measured). With odd random multipliers in place of i−1 such keys part at
// once, at the same cost.
var multipliers = func() (m [MaxHashes]uint64) {
	for i := range m {
		m[i] = mix(uint64(i+1)*goldenRatio) | 1
	}
	return m
}()

// goldenRatio is 2^64 divided by the golden ratio, as in SplitMix64.
const goldenRatio = 0x9e3779b97f4a7c15

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable
// pseudorandom number generators", 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// at returns the key as array number level sees it. Places in different arrays
// must be independent: keys that met in one array would meet again.
func (k key) at(level int) key {
	if level == 0 {
		return k
	}
	return key{mix(k.a + uint64(level)*goldenRatio), mix(k.b ^ uint64(level)*goldenRatio)}
}

// place returns where window i begins.
func (k key) place(i int, places uint64) uint64 {
	at, _ := bits.Mul64(k.b+k.a*multipliers[i], places)
	return at
}

// whitening returns what is added to a value, modulo the number of codes,
// before it is encoded. Without it a value that many keys have would fill its
// own bits of the windows. False positives grow then: 1.7-fold for a single
// value and κ = 2. It goes over all C(ν, κ) codes and not only over the θ
// values. So the markers are uniform, as the formulas in rate.go assume. A code
// then may stand for no value, which tells strangers apart.
func (k key) whitening(codes uint64) uint64 {
	w, _ := bits.Mul64((k.a^bits.RotateLeft64(k.b, 32))*goldenRatio, codes)
	return w
}
