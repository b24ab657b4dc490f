package locator

// The exact map knows a hash by a key: its image under a bijection that the seed
// chooses, so that keys are spread whatever the hashes are, and different hashes
// have different keys. It is the finalizer of SplitMix64 (Steele, Lea and Flood,
// "Fast splittable pseudorandom number generators", 2014) between two additions
// of the seed.

const (
	mul1, mul2 = 0xbf58476d1ce4e5b9, 0x94d049bb133111eb
	inv1, inv2 = 0x96de1b173f119089, 0x319642b2d24d8ec3 // mul·inv = 1 modulo 2^64
)

func (l *Locator) key(hash uint64) uint64 {
	x := hash + l.config.Seed
	x = (x ^ x>>30) * mul1
	x = (x ^ x>>27) * mul2
	return (x ^ x>>31) + l.config.Seed
}

// hash undoes key.
func (l *Locator) hash(key uint64) uint64 {
	x := key - l.config.Seed
	x = (x ^ x>>31 ^ x>>62) * inv2
	x = (x ^ x>>27 ^ x>>54) * inv1
	return (x ^ x>>30 ^ x>>60) - l.config.Seed
}
