package ribbon

import (
	"math/rand/v2"
	"testing"
)

// The hashes of a shard are a range that salts do not leave, and neighbouring
// shards' ranges meet.
func TestSaltsKeepTheShard(t *testing.T) {
	const seed = 3
	r := rand.New(rand.NewPCG(seed, 0))
	for _, buckets := range []uint64{1, 2, shardBuckets, shardBuckets + 1, 3*shardBuckets - 1, 1000*shardBuckets + 77, 1 << 27} {
		l := level{buckets: buckets}
		l.salts = l.newSalts()
		for shard := range l.salts {
			s := &l.salts[shard]
			s.number = 1 + r.Uint64N(maxSalt)
			if shard > 0 && s.first != l.salts[shard-1].last+1 {
				t.Fatalf("%d buckets: shard %d begins at %#x, the one before ends at %#x", buckets, shard, s.first, l.salts[shard-1].last)
			}
			for _, h := range []uint64{s.first, s.last, s.first + (s.last-s.first)/2} {
				for _, at := range []uint64{h, s.apply(h), l.salted(h)} {
					if got := position(at, buckets*bucketSlots) / shardSlots; got != uint64(shard) {
						t.Fatalf("%d buckets: hash %#x of shard %d is in shard %d (seed %d)", buckets, at, shard, got, seed)
					}
				}
			}
		}
		if l.salts[0].first != 0 || l.salts[len(l.salts)-1].last != ^uint64(0) {
			t.Fatalf("%d buckets: the shards do not cover all hashes", buckets)
		}
	}
}

// Salts move the keys of a shard, each to other places.
func TestSaltsDiffer(t *testing.T) {
	l := level{buckets: 3 * shardBuckets}
	l.salts = l.newSalts()
	s := l.salts[1]
	h := s.first + 12345
	seen := map[uint64]bool{}
	for ; s.number <= maxSalt; s.number++ {
		seen[s.apply(h)] = true
	}
	if len(seen) != maxSalt+1 || !seen[h] {
		t.Errorf("%d salts move a hash to %d places (to where it was without: %v)", maxSalt+1, len(seen), seen[h])
	}
}

// A shard with more keys in a bucket than columns is tried again with a salt, which
// spreads them.
func TestCrowdedShardIsSalted(t *testing.T) {
	const n, f = 5000, 8
	l := level{buckets: (standardSlots(n) + bucketSlots - 1) / bucketSlots}
	var list []entry
	for h := uint64(0); len(list) < n; h++ {
		crowd := l.start(rehash(h, 0))/bucketSlots == 20
		if crowd == (len(list) < 300) {
			list = append(list, entry{hash: h})
		}
	}
	tb, err := newStandard(f, n, 1, func(into []entry, from int) { copy(into, list[from:]) })
	if err != nil {
		t.Fatal(err)
	}
	if tb.levels[0].salts[0].number == 0 {
		t.Error("300 keys in a bucket of 128 slots stay there")
	}
	for _, e := range list {
		if p, _ := tb.find(e.hash); tb.value(p, 0, f) != fingerprint(p.hash, f) {
			t.Fatalf("hash %d is not accepted", e.hash)
		}
	}
}
