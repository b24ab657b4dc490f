package bloom

import "math/bits"

const (
	blockBits  = 512
	blockWords = blockBits / 64

	// Odd multipliers without a pattern: the golden ratio's, and Stafford's "Better bit
	// mixing", Mix13.
	mulPlaces = 0x9e3779b97f4a7c15
	mulStep   = 0xbf58476d1ce4e5b9
)

// position maps a hash to [0, n) by its upper bits (Lemire, "Fast random integer
// generation in an interval", 2019).
func position(h, n uint64) uint64 {
	hi, _ := bits.Mul64(h, n)
	return hi
}

// places are the places of a key in a Classic filter: an arithmetic progression of 64-bit
// numbers. Its two parameters are as good as k hashes (Kirsch and Mitzenmacher, "Less
// hashing, same performance", 2006).
type places struct{ at, step uint64 }

func placesOf(h uint64) places {
	step := (h ^ h>>32) * mulStep
	return places{h, step ^ step>>29 | 1}
}

// place returns the next of a key's bits.
func (f *Filter) place(p *places) uint64 {
	at := position(p.at, uint64(f.size)*64)
	p.at += p.step
	return at
}

// block returns the block of a key.
func (f *Filter) block(h uint64) *[blockWords]uint64 {
	at := position(h, uint64(f.size/blockWords)) * blockWords
	return (*[blockWords]uint64)(f.words[at:])
}

// The places in a block are taken nine bits at a time from a second hash. After seven of
// them they are taken from a third, and so on. An arithmetic progression would not do
// here. Of 512 places it has only 2^17, and a hundredth of strangers would be accepted in
// addition to their rate.

// again is the next number that seven places are taken from.
func again(x uint64) uint64 {
	x *= mulPlaces
	return x ^ x>>32
}

const placesPerHash = 7

func setBlock(b *[blockWords]uint64, h uint64, hashes int) {
	for hashes > 0 {
		h = again(h)
		x := h
		for range min(hashes, placesPerHash) {
			b[x>>6%blockWords] |= 1 << (x & 63)
			x >>= 9
		}
		hashes -= placesPerHash
	}
}

// inBlock looks at all bits, without a branch for each. They are in one cache line, and
// the first tells half of all strangers, which no processor predicts.
func inBlock(b *[blockWords]uint64, h uint64, hashes int) bool {
	all := uint64(1)
	for hashes > 0 {
		h = again(h)
		x := h
		for range min(hashes, placesPerHash) {
			all &= b[x>>6%blockWords] >> (x & 63)
			x >>= 9
		}
		hashes -= placesPerHash
	}
	return all != 0
}
