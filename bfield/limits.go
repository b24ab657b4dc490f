package bfield

import "github.com/syncd-io/syncd/bfield/internal/workers"

const (
	// MaxKeys is the most keys that a plan takes. Indices into an array stay
	// below 2^41 even with the largest MaxCellsPerKey·κ.
	MaxKeys = 1 << 32

	// MinFalsePositive is the lowest α. Below it, collisions of a key's 128-bit
	// hash, and of 64-bit keys themselves, are no longer negligible.
	MinFalsePositive = 1.0 / (1 << 48)

	// MaxKappa is the largest κ of a field. Above it the terms of the sum in rate.go
	// no longer fall. Plans cost 1.2 to 1.7 times what the paper's formulas promise.
	// With it values go to C(57, 4) = 395,010.
	MaxKappa = 4

	// MaxHashes is the largest k. α = 2^-48 with 57 values and κ = 1 takes 54.
	MaxHashes = 64

	// MaxCellsPerKey is the largest m/n: 1.44·k for the largest k, rounded up.
	MaxCellsPerKey = 128

	// MaxLoad is the largest k/(m/n), the ones set for each bit. With it, 3 bits
	// in 10,000 are 0 and next to nothing can be told apart. Plans choose 0.7 to
	// 2.3.
	MaxLoad = 8

	// MaxWorkers is the most goroutines that build: with w of them, marks lie in
	// w² lists.
	MaxWorkers = workers.Most

	// MaxLevels is the most arrays of a cascade. Each holds the part β of the
	// last one's keys, and β < 1/2 in sensible plans: 64 hold any n.
	MaxLevels = 64

	// MaxCandidates is the most values that Candidates lists.
	MaxCandidates = 1024

	// leastBits is the shortest array. Below it the few markers of a small set
	// would overlap far more than the formulas say, which are for many.
	leastBits = 1 << 11
)
