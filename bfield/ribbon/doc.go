// Package ribbon answers, for a fixed set of keys, what value goes with a key,
// in little more space than the values themselves: the keys are not stored.
//
//	r, err := ribbon.BuildRetrieval(ribbon.Config{ValueBits: 8}, keys, values)
//	r.Lookup(key) // the key's value; for a key that was not there, anything
//
// A [Retrieval] has no "no". A [Map] adds a fingerprint of f bits to each value
// and answers "absent" for a stranger, but for one in 2^f. A [Filter] has the
// fingerprints only: it answers "is the key in the set?".
//
// # The idea
//
// Let x be a vector of unknown bits, a little longer than the number of keys.
// The hash of a key picks a start in x and a pattern of w = 64 bits, its row;
// the XOR of the bits of x under the pattern is to be the value. That is one
// linear equation over bits a key (for values of r bits: one for each of r
// vectors). Sorted by their starts, the rows lie along the diagonal like a
// ribbon, so that elimination is local and cheap:
//
//	start ↓
//	  1 0 1 1 · · · · · · · ·     = value of the key that starts here
//	  · 1 1 0 1 · · · · · · ·     =
//	  · · · 1 0 0 1 · · · · ·     =      (w = 4 in this drawing)
//	  · · · 1 1 0 1 · · · · ·     =  ←   adding the row above gives · · · · 1 0 0 ·
//	  · · · · · 1 1 1 · · · ·     =      which starts one to the right
//	  x x x x x x x x x x x x            one bit of each vector a slot
//
// A look-up reads the two words that cover the window, masks them, and counts
// their bits: one parity a value bit.
//
// # Bumping
//
// With as many rows as columns, some row finds its columns all taken, and its
// equation contradicts the others. Bumped ribbon retrieval (BuRR) does not give
// up then: it cuts the starts into buckets of 128, inserts each from right to
// left, and where a row fails, bumps what lies left of it in the bucket on to
// another, smaller ribbon. Two bits a bucket say how much:
//
//	bucket  | bumped ← | kept                     |
//	offset  0          20          40           128
//	code    00: nothing  01: below 20  10: below 40  11: all
//
// As what does not fit is not lost, there may be more keys than slots: 16 for
// 15. Then almost no slot stays empty. The next level takes the bumped sixteenth
// in the same way, and a last one, of at most 3000 keys, has room to spare.
// Together that is 0.3 % more than the values, from 10^6 keys of 8 bits on.
//
// With [Config.TwoLayers] the second level is the last, whatever the number of keys
// (Bu¹RR): it has 8 % room to spare, which is half a per cent of the whole.
//
// What may not bump, the last level and standard filters, moves the
// keys of a stretch that fails to other places by a salt, which is kept.
//
// # Values of variable length
//
// A [Coded] gives frequent values few bits: they are written in a Huffman code
// ([Code]), whose codewords have different lengths and of which no one begins
// another. Each bit of a key's codeword is an equation of its own, in a retrieval
// of 1 bit, of the key together with the number of the bit:
//
//	value  frequency  codeword     equations of a key with value "b"
//	a      1/2        0
//	b      1/4        10           (key, 0) → 1,  (key, 1) → 0
//	c      1/4        11
//
// A look-up asks for bit 0, bit 1, … until the bits are a codeword. The size is
// the codewords' mean length, at most one bit above the entropy of the values,
// and 1.7 % from 10^6 equations on (1.6 % of it two bits a bucket, which wider
// values share), and 8 bytes for each value of the code. Each bit is another place in memory.
//
// # What it does not do
//
// The set is fixed: another key means another build. A build holds all keys'
// hashes and values, 16 bytes a key, beside its input. Few keys take much space:
// the smallest level has 192 slots. A key given twice takes the space of two.
// A Coded holds 16 bytes an equation while it is built, and 4 a key.
//
// Hashing is as package keyed says: an adversary that knows the seed can make
// keys that cannot be built, or that a filter accepts. Hash untrusted keys under
// a secret first, and give the hashes as numbers.
//
// # Sources
//
// Dietzfelbinger and Walzer, "Efficient Gauss elimination for near-quadratic
// matrices with one short random block per row", 2019 (the ribbon); Dillinger
// and Walzer, "Ribbon filter: practically smaller than Bloom and Xor", 2021
// (standard); Dillinger, Hübschle-Schneider, Sanders and Walzer, "Fast succinct
// retrieval and approximate membership using ribbon", SEA 2022 (bumped, interleaved); P. Sanders, slides "Space efficient hash tables" (values in
// prefix-free codes by 1-bit retrieval, each key in one of two layers). The lower bound of a filter is log2(1/ε) bits a key for
// a false positive rate ε; slides that give it as "2^-f" mean the rate.
package ribbon
