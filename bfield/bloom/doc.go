// Package bloom tells whether a key is in a set. The answer is always yes for a key
// of the set, and yes with a small probability for another. The set may grow between
// look-ups, by one key at a time. A key is never taken out.
//
//	f, err := bloom.New(bloom.Config{Keys: 1_000_000, BitsPerKey: 13})
//	f.Insert(key)
//	f.Lookup(key)
//
// # The idea
//
// The filter is m bits, all 0 at first. k hashes of a key give k places, and inserting
// the key sets them. A key with a 0 at one of its places was never inserted. With n
// keys inside, a stranger finds all of its places set with probability about
// (1 − e^(−kn/m))^k. The best k is m/n · ln 2, which makes it 0.6185^(m/n). For one in
// 100 that is 9.57 bits a key.
//
// Each of the k places costs a cache line of its own. A [Blocked] filter takes one. The
// first hash picks a block of 512 bits, and all places of a key are inside. Some blocks
// are fuller than others, which costs false positives:
//
//	bits a key      8        10       13       16       20
//	Classic     2.16 %    0.82 %   0.194 %  0.046 %  0.0067 %
//	Blocked     2.33 %    0.97 %   0.273 %  0.084 %  0.0198 %
//
// # Which to choose
//
// Blocked answers several times as fast where the filter is larger than the cache.
// Classic is smaller at the same rate, the more so the smaller the rate is.
//
// Neither is small. The least for a rate ε is log2(1/ε) bits a key. A Bloom filter takes
// 44 % more. Package ribbon's filters take 0.3 to 20 % more, but they are built once. So
// take a Bloom filter for a set that grows, or for the union of sets on several
// machines. Filters of one Config merge by OR ([Filter.Merge]).
//
// # What it does not do
//
// It does not forget, and it does not grow. With more keys than Config.Keys it still
// finds each of them, and strangers too often.
//
// Hashing is as package keyed says: an adversary that knows the seed can make keys that
// the filter accepts. Hash untrusted keys under a secret first, and give the hashes as
// numbers.
//
// # Sources
//
// Bloom, "Space/time trade-offs in hash coding with allowable errors", 1970. The blocks:
// Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom filters", 2007.
package bloom
