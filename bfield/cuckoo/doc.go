// Package cuckoo holds keys and values in buckets of a few slots. Hardly any slot
// stays free, and still each key is found in one of two places. Map is exact: it
// has 48-bit keys and 48-bit values in about 12 bytes an entry. Table stores
// fingerprints in place of keys, and is wrong about strangers now and then.
//
// # The idea
//
// H hash functions give each key H buckets of B slots. The key is in one of
// these H·B slots, so look-up and deletion are a few comparisons. If all are
// taken, an insertion moves entries to their other buckets to make room, as the
// cuckoo does with eggs. A breadth-first search finds which, so that as few as
// possible move. With H = 2 and B = 2, where d may be in bucket 1 or 3, f in 4 or 6:
//
//	insert x    bucket 1   bucket 4
//	            |a|d|      |f|b|          both full: whose other buckets?
//	             / \        / \
//	            2   3      6   5
//	          |c|g||h|_|               3 has room: d moves there
//
//	            bucket 1   bucket 3
//	            |a|x|      |h|d|          and x takes its slot
//
// With random hash functions this fails only close to a sharp limit, which is
// near 1 even for small H and B. This is bucket cuckoo hashing (Pagh, Rodler 2001;
// Fotakis, Pagh, Sanders, Spirakis 2003; Dietzfelbinger, Weidling 2005). The
// largest loads in theory, to which docs/STRUCTURES.md adds those measured, are:
//
//	H \ B    1       2       3       4       6
//	2      .5000   .8970   .9592   .9804   .9941
//	3      .9179   .9882   .9973   .9993
//	4      .9768   .9982   .9998   .99997
//
// An insertion at load ε below the limit looks at fewer than 1/ε buckets while
// 1/ε is below some 30 and B above 1. Closer to the limit it looks at more
// (docs/STRUCTURES.md).
//
// # Map
//
// A Map has H = 2 and B = 6, and a bucket is one cache line. It fits six entries
// of 12 bytes into 64 because a part of each key is in its bucket's number. The
// hash is a bijection, and only its quotient by the number of buckets is stored
// (quotienting, Knuth, TAOCP 3, section 6.4, exercise 13).
//
//	m, err := cuckoo.NewMap[Index, Checksum](cuckoo.MapConfig{Keys: 10_000_000})
//	err = m.Set(index, sum)
//	sum, ok := m.Get(index)
//	hits := m.GetBatch(indices, sums, nil) // cache misses overlap
//
// It grows without a pause, by linear hashing. When it is full, each insertion
// splits a bucket or two. The entries of a bucket go into the new, empty one or
// stay. One call moves at most MaxMoves entries, at any size.
//
//	buckets   |0|1|2|3|4|      base 5: x is in x mod 5, or in x mod 10 if
//	split 0   |0|1|2|3|4|5|    there is such a bucket yet
//	split 1   |0|1|2|3|4|5|6|
//
// # Table
//
// A Table has any H from 2 to 4 and B from 1 to 8. Its slots have only as many
// bits as the false positive rate, the value and log2(H) take, and are packed
// without a gap. An entry's other buckets follow from its fingerprint alone. So
// it can move although its key is forgotten (cuckoo filter: Fan, Andersen,
// Kaminsky, Mitzenmacher 2014).
//
//	t, err := cuckoo.New(cuckoo.Config{Keys: n, ValueBits: 8, FalsePositive: 0x1p-16})
//	err = t.Insert(key, value)
//	value, ok := t.Lookup(key)
//
// Each entry is one of base·(2^f − 1) identities, by its first bucket mod base
// and its fingerprint of f bits. So n entries make the false positive rate
// 1 − e^(−n/(base·(2^f − 1))), as Stats tells. Growth does not add to the
// fingerprints, so with g times the planned keys the rate is g times as high.
//
// # Limits
//
// While a table grows, the buckets that are not split yet are hit twice as often
// as the others. So the limit is lower then, and a table grows from load 0.85 of
// the limit. A Table of planned size is filled to 0.95 of it, a Map to 0.9. No
// table shrinks.
//
// An insertion that finds no room within its bounds waits in a stash of 16
// entries, and goes into the table with a later call. An adversary that knows
// the seed can choose keys that fill the stash. Then Set and Insert return
// ErrCrowded. They never loop, and never grow the table for it. Hash untrusted
// keys with a keyed hash first.
//
// Many goroutines may read at once, or one may write. A lock is the caller's.
// MarshalBinary saves a table in a versioned, checksummed form. What is read is checked
// against all the rules of a table, so hostile bytes are refused.
package cuckoo
