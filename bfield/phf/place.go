package phf

import "math/bits"

// Multipliers of Stafford's "Better bit mixing", Mix13, and the golden ratio's.
const (
	mulFirst  = 0xbf58476d1ce4e5b9
	mulSecond = 0x94d049bb133111eb
	mulSalt   = 0x9e3779b97f4a7c15
)

// position maps a hash to [0, n) in the order of the hashes. Hashes that are sorted are
// sorted by shard (Lemire, "Fast random integer generation in an interval", 2019).
func position(h, n uint64) uint64 {
	hi, _ := bits.Mul64(h, n)
	return hi
}

// slot returns the slot that a choice of 0 to 3 stands for, in a shard of m slots.
func slot(h uint64, salt, choice, m uint32) uint32 {
	h = (h ^ uint64(salt)*mulSalt) * mulFirst
	h = (h ^ h>>29) * mulSecond
	h ^= h >> 32
	if choice >= 2 {
		h *= mulFirst
		h ^= h >> 31
	}
	half := h >> (32 * (choice & 1)) & (1<<32 - 1)
	return uint32(half * uint64(m) >> 32)
}
