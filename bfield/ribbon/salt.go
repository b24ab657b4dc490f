package ribbon

import "math/bits"

// salt moves the keys of one shard to other places in it. A shard that cannot
// be solved, or only badly, is tried again with the next salt. The other shards
// do not change, so what a try costs does not grow with the number of keys.
type salt struct {
	number      uint64 // 0: the keys stay where they are
	first, last uint64 // the hashes of this shard
}

// maxSalt is the last salt tried. A try fails once in a few times. So more than
// some are needed only for keys made to fail.
const maxSalt = 63

// newSalts returns the salts of a level with all numbers 0.
func (l *level) newSalts() []salt {
	salts := make([]salt, l.shards())
	for i := range salts {
		if i > 0 {
			salts[i].first = l.firstHash(uint64(i))
			salts[i-1].last = salts[i].first - 1
		}
	}
	salts[len(salts)-1].last = ^uint64(0)
	return salts
}

// firstHash is the lowest hash whose position is in a shard, 1 or a later one.
// It is ceil(2^64 · first position / positions).
func (l *level) firstHash(shard uint64) uint64 {
	q, rest := bits.Div64(shard*shardSlots, 0, l.buckets*bucketSlots)
	if rest > 0 {
		q++
	}
	return q
}

// apply returns another hash of the same shard.
func (s *salt) apply(h uint64) uint64 {
	if s.number == 0 {
		return h
	}
	return s.first + position(rehash(h, s.number*mulCoefficient), s.last-s.first)
}

// salted applies the salt of the hash's shard.
func (l *level) salted(h uint64) uint64 {
	return l.salts[position(h, l.buckets*bucketSlots)/shardSlots].apply(h)
}
