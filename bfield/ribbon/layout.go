package ribbon

// The layout of one level. Columns ("slots") are cut into shards, which are
// solved apart, and shards into buckets, which bump apart:
//
//	level   | shard 0                              | shard 1     …
//	        | bucket 0 | bucket 1 | … | 511 | tail | bucket 512  …
//
// A window begins in a bucket and may reach into the next one. From a shard's
// last bucket it may reach into the shard's tail. The layout depends on the
// number of keys alone. So a build by many workers gives the same bits as one
// by a single one.
const (
	// bucketSlots is B of the BuRR paper. The paper finds w²/(4 log2 w) ≈ 170
	// best for w = 64, and takes 128 to have offsets of 7 bits.
	bucketSlots = 128

	// shardBuckets makes a shard of 2^17 slots. Its band (2 MiB) and its keys
	// (2.2 MB) stay in a core's caches. Measured, tails lose 0.02 % of the space
	// less than with shards of half the size, and 0.01 % more than with those of
	// double the size.
	shardBuckets = 1024
	shardSlots   = shardBuckets * bucketSlots

	// tailSlots lets the windows of the last bucket end within the shard.
	tailSlots = window

	shardBlocks = (shardSlots + tailSlots) / 64
)

// thresholds are the four choices of how much of a bucket is bumped: the keys
// whose window begins below. Measured best with this bucket and overload.
var thresholds = [4]uint64{0, 20, 40, bucketSlots}

// codesPerWord is how many 2-bit codes, one a bucket, fit in a word.
const codesPerWord = 32

// level is one layer of a table: solutions of all keys that were not bumped.
type level struct {
	buckets uint64   // ≥ 1
	words   []uint64 // the blocks of all shards

	// A level that bumps has codes; one that does not has salts, because it
	// must try again where it fails.
	codes []uint64 // 2 bits a bucket, an index into thresholds
	salts []salt   // one a shard
}

func (l *level) shards() int { return int((l.buckets + shardBuckets - 1) / shardBuckets) }

// slots is the number of slots, tails included.
func (l *level) slots() uint64 {
	return l.buckets*bucketSlots + uint64(l.shards())*tailSlots
}

// codeWords is the number of words of a level's codes.
func codeWords(buckets uint64) uint64 { return (buckets + codesPerWord - 1) / codesPerWord }

// start returns the position at which the window of a hash of this level
// begins. Within a bucket it runs against the order of the hashes. Keys sorted
// by hash are in order of bucket from left to right. Within each bucket they
// are from right to left, which is the order of insertion.
func (l *level) start(h uint64) uint64 {
	return position(h, l.buckets*bucketSlots) ^ (bucketSlots - 1)
}

// bumped says, of a level that bumps, whether the window that begins at start went to the next level.
func (l *level) bumped(start uint64) bool {
	bucket := start / bucketSlots
	code := l.codes[bucket/codesPerWord] >> (bucket % codesPerWord * 2) & 3
	return start%bucketSlots < thresholds[code]
}

// block returns the number of the block in which the window begins.
func block(start uint64) uint64 {
	return start/64 + start/shardSlots*(tailSlots/64)
}
