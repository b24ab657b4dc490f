package rateless

import "math/rand/v2"

// sides are two sets that differ, with their sketches.
type sides struct {
	theirs, ours *Sketch
	local        map[Index]Checksum
	want         map[Index]Difference
}

func randomIndex(r *rand.Rand) Index { return Index(r.Uint64N(p-1) + 1) }

// randomChecksum is a checksum of index k.
func randomChecksum(r *rand.Rand, k Index) Checksum { return Seal(k, r.Uint64N(1<<34)) }

func randomPair(r *rand.Rand) Pair {
	k := randomIndex(r)
	return Pair{Index: k, Checksum: randomChecksum(r, k)}
}

// diverge makes two sets with the given numbers of differences of each kind
// and common pairs.
func diverge(r *rand.Rand, key Key, m, common, here, there, mismatched int) *sides {
	s := &sides{NewSketch(key, m), NewSketch(key, m), map[Index]Checksum{}, map[Index]Difference{}}
	fresh := func() Index {
		for {
			k := randomIndex(r)
			_, held := s.local[k]
			_, wanted := s.want[k]
			if !held && !wanted {
				return k
			}
		}
	}
	freshPair := func() Pair {
		k := fresh()
		return Pair{Index: k, Checksum: randomChecksum(r, k)}
	}
	for range common {
		q := freshPair()
		s.theirs.Add(q)
		s.ours.Add(q)
		s.local[q.Index] = q.Checksum
	}
	for range here {
		q := freshPair()
		s.theirs.Add(q)
		s.want[q.Index] = Difference{MissingHere, q.Index, q.Checksum, 0}
	}
	for range there {
		q := freshPair()
		s.ours.Add(q)
		s.local[q.Index] = q.Checksum
		s.want[q.Index] = Difference{MissingThere, q.Index, 0, q.Checksum}
	}
	for range mismatched {
		q := freshPair()
		t := Pair{Index: q.Index, Checksum: randomChecksum(r, q.Index)}
		for q == t {
			t.Checksum = randomChecksum(r, q.Index)
		}
		s.ours.Add(q)
		s.theirs.Add(t)
		s.local[q.Index] = q.Checksum
		s.want[q.Index] = Difference{Mismatched, q.Index, t.Checksum, q.Checksum}
	}
	return s
}

func (s *sides) lookup(indices []Index, sums []Checksum) error {
	for i, k := range indices {
		sums[i] = s.local[k]
	}
	return nil
}

const p = 1<<42 - 11
