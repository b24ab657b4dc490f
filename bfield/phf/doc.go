// Package phf gives each key of a fixed set a number of its own: a perfect hash function.
// The keys are not stored, so it takes 1.02 to 2.5 bits a key. With the numbers as places
// of an array it is a static map whose keys take next to no space. That holds if each
// look-up is of a key that is there.
//
//	f, err := phf.Build(phf.Config{ChoiceBits: 2, Minimal: true}, keys)
//	table := make([]T, f.Slots())
//	table[f.Lookup(key)] = …
//
// # The idea
//
// Cuckoo hashing gives each key 2^r slots to choose from, and finds a choice for each so that
// no two keys share a slot. The load limits that: with two choices a table may be half full,
// with four 97.7 %. A look-up in a cuckoo table reads the slots one by one until it finds the
// key. Without keys there is nothing to find, but it is enough to know which choice was made.
// That is r bits a key. A ribbon retrieval (package ribbon) gives them back for some
// hundredths more.
//
//	key ──hash──▶ shard, and slots  a b c d  in it
//	key ──retrieval──▶ 2  ──▶ c
//
//	r   choices   slots a key   bits a key   minimal
//	1   2         2.1           1.02         –
//	2   4         1.03          2.02         2.50
//
// # Minimal
//
// A minimal function numbers n keys 0 to n−1. Keys in slots from n on get another number, of a
// slot below n that stays empty: 16 bits for each such slot. With four choices these are 3 in
// 100, half a bit a key.
//
// # Shards
//
// The keys are cut by their hashes into shards of some 2^15. These are solved one by one, in
// the second-level cache, by several goroutines. Choices are found by local search (Khosla,
// "Balls into bins made faster", ESA 2013). Each slot has a label, a lower bound of the way
// from there to an empty one. A key takes the slot of the lowest label and puts out the key
// that was there, which does the same. A shard without a solution gets another salt.
//
// # What it does not do
//
// A key that was not there is given a number as well, that of another key. Ask a filter first
// if that matters. The set is fixed. A key given twice counts once.
//
// Hashing is as package keyed says: an adversary that knows the seed can make keys that no
// function can be built of. Hash untrusted keys under a secret first, and give the hashes as
// numbers.
//
// # Sources
//
// Sanders, "Space efficient hash tables" (slides, KIT), "Perfect hashing: cuckoo and
// retrieval": m = 2n for one bit, 1.024n for two.
//
// Müller, Sanders, Schulze and Zhou, "Retrieval and perfect hashing using fingerprinting",
// SEA 2014.
//
// The least that a minimal function can have is log2 e = 1.44 bits a key.
package phf
