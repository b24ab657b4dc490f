// Package ribbon answers, for a fixed set of keys, what value goes with a key. It
// takes little more space than the values themselves: the keys are not stored.
//
//	r, err := ribbon.BuildRetrieval(ribbon.Config{ValueBits: 8}, keys, values)
//	r.Lookup(key) // the key's value; for a key that was not there, anything
//
// A [Retrieval] has no "no". A [Map] adds a fingerprint of f bits to each value.
// It answers "absent" for a stranger, but for one in 2^f. A [Filter] has the
// fingerprints only: it answers "is the key in the set?".
//
// # The idea
//
// Let x be a vector of unknown bits, a little longer than the number of keys.
// The hash of a key picks a start in x and a pattern of w = 64 bits, its row.
// The XOR of the bits of x under the pattern is to be the value. That is one
// linear equation over bits a key. Values of r bits have one for each of r
// vectors. Sorted by their starts, the rows lie along the diagonal like a
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
// their bits. That is one parity a value bit.
//
// # Bumping
//
// With as many rows as columns, some row finds its columns all taken, and its
// equation contradicts the others. Bumped ribbon retrieval (BuRR) does not give
// up then. It cuts the starts into buckets of 128, and inserts each from right to
// left. Where a row fails, what lies left of it in the bucket is bumped: it goes
// on to another, smaller ribbon. Two bits a bucket say how much:
//
//	bucket  | bumped ← | kept                     |
//	offset  0          20          40           128
//	code    00: nothing  01: below 20  10: below 40  11: all
//
// What does not fit is not lost, so there may be more keys than slots: 16 for 15.
// Then almost no slot stays empty. The next level takes the bumped sixteenth in
// the same way. A last one, of at most 3000 keys, has room to spare. Together that
// is 0.3 % more than the values, from 10^6 keys of 8 bits on.
//
// With [Config.TwoLayers] the second level is the last, whatever the number of
// keys (Bu¹RR). It has 8 % room to spare, which is half a per cent of the whole.
//
// The last level and standard filters may not bump. Where a stretch fails, a salt
// moves its keys to other places. The salt is kept.
//
// # Values of variable length
//
// A [Coded] gives frequent values few bits. They are written in a Huffman code:
// its codewords have different lengths, and none begins another. Each bit of a key's codeword is an equation of its own, in a retrieval of 1 bit. It is
// of the key together with the number of the bit:
//
//	value  frequency  codeword     equations of a key with value "b"
//	a      1/2        0
//	b      1/4        10           (key, 0) → 1,  (key, 1) → 0
//	c      1/4        11
//
// A look-up asks for bit 0, bit 1, … until the bits are a codeword. Each bit is
// another place in memory. The size is the sum of:
//
//   - the codewords' mean length, at most one bit above the entropy of the values;
//   - 1.7 % of that from 10^6 equations on, of which 1.6 % are the two bits a
//     bucket, which wider values share;
//   - 8 bytes for each value of the code.
//
// # What it does not do
//
// The set is fixed: another key means another build. In addition to its input, a
// build holds all keys' hashes and values, 16 bytes a key. A Coded holds 16 bytes
// an equation while it is built, and 4 a key. Few keys take much space: the
// smallest level has 192 slots. A key given twice takes the space of two.
//
// Hashing is as package keyed says: an adversary that knows the seed can make
// keys that cannot be built, or that a filter accepts. Hash untrusted keys under
// a secret first, and give the hashes as numbers.
//
// # Sources
//
// The ribbon: Dietzfelbinger and Walzer, "Efficient Gauss elimination for
// near-quadratic matrices with one short random block per row", 2019.
//
// Standard: Dillinger and Walzer, "Ribbon filter: practically smaller than Bloom
// and Xor", 2021.
//
// Bumped, interleaved: Dillinger, Hübschle-Schneider, Sanders and Walzer, "Fast
// succinct retrieval and approximate membership using ribbon", SEA 2022.
//
// Values in prefix-free codes by 1-bit retrieval, each key in one of two layers:
// P. Sanders, slides "Space efficient hash tables".
//
// The lower bound of a filter is log2(1/ε) bits a key for a false positive rate ε.
// Slides that give it as "2^-f" mean the rate.
package ribbon
