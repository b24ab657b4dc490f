// Package keyset writes a set of 64-bit key hashes in hardly more bits than it takes
// to tell it from the other sets of its size. The set is cut into blocks that are
// sent, verified and resumed one by one. By them a host sends a node the indices, of
// 42 bits, that a shard has. The node builds its locator of them.
//
//	block, err := keyset.Append(nil, at, hashes, last)            // the host: up to MaxKeys
//	hashes, next, err := keyset.Decode(hashes[:0], at, block)     // the node
//	if !next.Done { … }                                           // ask on from next
//
// # The idea
//
// Sorted hashes differ from their neighbours by gaps like those of evenly thrown
// points. For the mean gap m, g occurs with probability about e^(−g/m)/m. Such numbers
// are written best as a quotient by about m, in unary, and a remainder in binary
// (Golomb 1966; Rice 1979, with powers of two):
//
//	hashes   17      29    30                     95
//	gaps     17      11     0                     64          (less one; the first as it is)
//	k = 4    1|1     0|11   0|0                   4|0         quotient|remainder
//	bits     01 1000  1 1101  1 0000              00001 0000  (the lowest first)
//
// # Size
//
// log2 C(2^64, n) = n·(64 − log2 n + 1.44) bits tell n hashes apart from all other
// sets. A block takes 0.03 to 0.14 bits a hash more, and 20 bytes. At 10^7 keys in 256
// shards, a shard's 39,063 hashes take 50.3 bits each. The bound is 50.2.
//
// Hashes of 48 bits would take 34.2. But of n keys, n²/2^(b+1) pairs share a hash of
// b bits. Each pair is a key whose look-up is answered with another key's shard. At
// 10^8 keys these are 17.8 pairs with 48 bits, and 0.0003 with 64.
//
// # The block
//
// All numbers are little-endian.
//
//	1 byte   version: 1
//	1        k, and flags: 64 if the set begins here, 128 if it ends here
//	2        hashes, 0 to MaxKeys; 0 only where the set ends
//	4        bytes of the gaps
//	8        the last hash of the block before; 0 if the set begins here
//	         the gaps, bit by bit from the lowest: as many zeros as the quotient, a
//	         one, and the k bits of the remainder; then zeros up to a byte
//	4        the lower half of the XXH3 of all that is before
//
// k is the number of bits of the mean gap less one, so a block has one form. The
// checksum finds damage, not malice. A block of any bytes is refused or accepted in
// time and memory that MaxKeys bounds.
package keyset
