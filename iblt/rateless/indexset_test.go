package rateless

import (
	"math/rand/v2"
	"testing"
)

// TestIndexSet compares with a map, and holds the set to at most half full: a
// fuller one would take many steps for an index that is not in it.
func TestIndexSet(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 0))
	s, want := newIndexSet(), map[Index]bool{}
	for range 5000 {
		k := Index(1 + r.Uint64N(4000))
		if r.IntN(2) == 0 {
			k = randomIndex(r)
		}
		if s.has(k) != want[k] || s.add(k) == want[k] || !s.has(k) {
			t.Fatalf("index %d: was in the set: %v", k, want[k])
		}
		want[k] = true
		if s.used != len(want) || 2*s.used > len(s.slots) {
			t.Fatalf("%d of %d indices in %d slots", s.used, len(want), len(s.slots))
		}
	}
}
