// Package locator says in which shard a key is, for all keys of a set that is far
// too large to be listed: in some three and a half bytes a key, by its 64-bit
// hash, and with each answer how sure it is. A node that has a Locator of a sharded
// set sends a look-up straight to the node that holds the key.
//
//	l, err := locator.New(locator.Config{Shards: 256, Seed: random})
//	err = l.Rebuild(feed)              // all keys, from whatever knows them
//	err = l.Set(hash, 17)              // and then what changes
//	shard, answer := l.Lookup(hash)
//
// # The idea
//
// A key that does not change its shard is cheapest in a ribbon.Map, which takes
// the bits of the shard and of a fingerprint and hardly more, but never changes.
// So what changes lies over it, and is asked first:
//
//	look-up
//	   │
//	   ▼
//	tail    new entries, 18 bytes each                   written in place
//	   │ not there
//	   ▼
//	run     moves, removals, new keys, 7.5 bytes each    replaced as a whole
//	   │ not there
//	   ▼
//	base    all keys of the last rebuild (ribbon.Map)    replaced as a whole
//	   │ not there
//	   ▼
//	field   new keys (bfield.Field), if so configured    replaced as a whole
//
// Tail and run are one exact map. The order matters: a B-field before the base
// would find strangers, at its rate of false positives, among the base's keys. And
// a key that is new is looked up before it goes anywhere: if the base, or the
// field, answers it already, by right or by chance, the exact map takes it, unless
// what they answer is right. So of a key that was fed, no answer names a wrong
// shard; only of one that was not, and the rate of that is told.
//
//	answer     meaning                          of a key that was fed    of a stranger
//	Exact      in this shard                    right                    never
//	Likely     in this shard                    right                    2^-f a layer
//	OneOf      in one of Candidates             right                    rarely
//	Removed    in no shard any more             right                    never
//	Nowhere    never heard of                   never                    right
//
// # Many readers and one writer
//
// A look-up takes no lock. What it asks is a value that never changes, behind an
// atomic pointer, but for the tail, whose keys stay where they were written. When
// the tail is full, the writer merges it into a new run and swaps the pointer. Small
// locks over parts of a map were the other choice: they are as fast until the system
// takes the processor from a writer that holds one, and then a look-up waits for
// as long as the writer does. And as a run never changes, it can be packed: 7.5
// bytes an entry, where a cuckoo.Map takes 12 to 14.
//
// Rebuild makes a new base from a feed of all keys while look-ups and changes go
// on. The changes since it began are kept apart, and lie over the new base in the
// end. There is no log: what feeds a Locator must be able to feed it again.
//
// # Delta
//
// New keys go into the exact map (ExactDelta) or into a B-field (FieldDelta),
// which is half as large but adds its false positives to the base's, cannot forget a
// key until the next rebuild, and leaves a part of its keys OneOf until Repair has
// gone through the feed. docs/STRUCTURES.md has both beside each other.
//
// # What is not promised
//
// Keys are their hashes. Of n keys with uniform hashes, n²/2^65 pairs share one
// in the mean: 3 in 10^4 sets of 10^8 keys have such a pair. Hash untrusted keys
// under a secret; and keep Config.Seed to yourself, since an adversary that knows it can choose
// hashes that are false positives, or that crowd in a bucket of the run and slow
// its look-ups.
//
// A call of Set or Remove takes a microsecond or so, but for one in some tens of
// thousands, which merges: some 20 ns an entry of the exact map.
package locator
