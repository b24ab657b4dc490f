package cuckoo

import "math"

// Bounds, each with its reason.
const (
	// maxHashes and maxSlots are the largest shape. Beyond 4 hash functions of
	// 4 slots, 3 in 10^5 slots stay free and more would be wasted work.
	maxHashes = 4
	maxSlots  = 8

	// maxBuckets keeps bucket numbers far from overflow: 10^9 entries take
	// 2.7·10^8 buckets of four.
	maxBuckets = 1 << 31

	// chunkBuckets is how many buckets are allocated at once. The pointers to
	// the chunks of a Map of 10^7 entries, 13 KiB, stay in the first-level cache.
	chunkBits    = 10
	chunkBuckets = 1 << chunkBits

	// stashSize is how many entries may wait because their search for a free slot
	// was given up. A handful makes failure unlikely beyond measure (Kirsch,
	// Mitzenmacher, Wieder, "More robust hashing: cuckoo hashing with a stash",
	// 2009). Each costs every look-up a comparison while it is there.
	stashSize = 16

	// splitsPerInsert is how many buckets are split by one insertion while a Map
	// grows. One adds more slots than the insertion takes. The second makes up
	// for a plan that was filled to the brim.
	splitsPerInsert = 2

	// leastBase is the least number of buckets that a Map can have. A tag has 36 bits for
	// r + 1 = ⌊x / base⌋ + 1 of numbers x < 2^48. mapBase is the least that a new one
	// has, 512 KiB. It is a power of two, for spread.masked.
	leastBase = 1<<12 + 1
	mapBase   = 1 << 13

	// nearBuckets are 1 MiB, which a second-level cache holds.
	nearBuckets = 1 << 14

	// mapNodes and mapDepth bound an insertion into a Map. With six ways out of
	// each bucket, 518 buckets are within three moves. The fourth is for those
	// ways that lead back.
	mapNodes = 518
	mapDepth = 4

	// tableBase is the least number of buckets of a Table.
	tableBase = 256

	// maxFingerprint are the bits that the hash has in addition to those of the
	// bucket.
	maxFingerprint = 32

	// spareBits of a fingerprint take no part in the growth of a Table, nor does
	// half of it.
	spareBits = 8

	// searchNodes is what an insertion into a Table looks at by default: enough
	// for loads up to .9995. maxSearch and maxDepth bound the numbers of nodes
	// and the moves of one insertion.
	searchNodes = 1 << 14
	minSearch   = 2 * maxHashes
	maxSearch   = 1 << 24
	maxDepth    = 4096

	// MaxMoves is how many entries of a Map one call moves at most. Two buckets
	// of six split, and four moves make room for the new entry. One entry of the
	// stash finds its place by four more.
	MaxMoves = splitsPerInsert*mapSlots + mapDepth + 1 + mapDepth
)

// loads are the largest loads at which all entries of a random set have a
// place, by hash functions and slots of a bucket. They hold in the limit of
// large tables. For H hash functions and B slots, let ξ solve H·B = ξ·Q(ξ,
// B)/Q(ξ, B+1). Q(x, y) is the probability that a Poisson number of mean x is
// at least y. The load is ξ/(H·B·Q(ξ, B)^(H−1)). Its source is Fountoulakis,
// Khosla, Panagiotou, "The multiple-orientability thresholds for random
// hypergraphs", SODA 2011, theorem 1.1. For H = 2 it is Cain, Sanders, Wormald,
// SODA 2007. The test computes them anew.
var loads = [maxHashes + 1][maxSlots + 1]float64{
	2: {0, .50000, .89701, .95915, .98037, .98955, .99407, .99649, .99785},
	3: {0, .91794, .98820, .99729, .99925, .99977, .99993, .99998, .99999},
	4: {0, .97677, .99824, .99980, .99997, 1, 1, 1, 1},
}

// Fractions of the limit. See planned and growing.
const (
	planFraction = 0.95
	growFraction = 0.85
)

// mapLoad is the load to which a Map of planned size is filled: 11.9 bytes an
// entry. At 0.94 it would take 11.3. But then one key in five, and not one in
// six, would be in its second bucket, and Get slower.
const mapLoad = 0.895

// planned is the load to which a table of known size is filled. It is three in
// a hundred below the limit, where insertion looks at some tens of buckets. Two
// hash functions of one slot have no such margin: any two cycles that meet make
// an insertion fail.
func planned(hashes, slots int) float64 {
	if hashes == 2 && slots == 1 {
		return 0.9 * loads[2][1]
	}
	return planFraction * loads[hashes][slots]
}

// growing is the load at which a table grows. While it does, buckets that are
// not split yet are addressed twice as often as the others, and the limit is
// lower. It is lower by 6 % for two hash functions of four slots. For those of
// one slot it is lower by 11 %, where half the buckets are split.
func growing(hashes, slots int) float64 { return growFraction * loads[hashes][slots] }

// bucketsFor is how many buckets hold so many keys at a load.
func bucketsFor(keys int, slots int, load float64) uint64 {
	return uint64(math.Ceil(float64(keys) / (float64(slots) * load)))
}

// full is how many entries so many buckets hold at a load.
func full(buckets uint64, slots int, load float64) int {
	return int(float64(buckets) * float64(slots) * load)
}
