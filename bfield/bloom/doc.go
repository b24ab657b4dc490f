// Package bloom tells whether a key is in a set: always yes for a key of the set,
// and yes with a small probability for another. The set may grow between look-ups, by
// one key at a time; a key is never taken out.
//
//	f, err := bloom.New(bloom.Config{Keys: 1_000_000, BitsPerKey: 13})
//	f.Insert(key)
//	f.Lookup(key)
//
// # The idea
//
// The filter is m bits, all 0 at first. k hashes of a key give k places; inserting a
// key sets them, and a key of which one is 0 was never inserted (Bloom, "Space/time
// trade-offs in hash coding with allowable errors", 1970). With n keys inside, a
// stranger finds all of its places set with probability about (1 − e^(−kn/m))^k; the
// best k is m/n · ln 2, which makes it 0.6185^(m/n): 9.57 bits a key for one in 100.
//
// Each of the k places costs a cache line of its own. A [Blocked] filter takes one: the
// first hash picks a block of 512 bits, and all places of a key are inside (Putze,
// Sanders and Singler, "Cache-, hash- and space-efficient Bloom filters", 2007). Some
// blocks are fuller than others, which costs false positives:
//
//	bits a key      8        10       13       16       20
//	Classic     2.16 %    0.82 %   0.194 %  0.046 %  0.0067 %
//	Blocked     2.33 %    0.97 %   0.273 %  0.084 %  0.0198 %
//
// # Which to choose
//
// Blocked answers several times as fast where the filter is larger than the cache;
// Classic is smaller for one rate, the more so the smaller the rate is. Neither is small:
// package ribbon's filters take log2(1/ε) bits a key and 0.3 to 20 % more, where a Bloom
// filter takes 44 % more, but they are built once. So take a Bloom filter for a
// set that grows, or for one that is the union of sets on several machines: filters of
// one Config merge by OR ([Filter.Merge]).
//
// # What it does not do
//
// It does not forget, and it does not grow: with more keys than Config.Keys it still
// finds each of them, and strangers too often. Hashing is as package keyed says: an
// adversary that knows the seed can make keys that the filter accepts. Hash untrusted
// keys under a secret first, and give the hashes as numbers.
package bloom
