package rateless

import (
	"math/rand/v2"
	"testing"
)

// TestIndexMap compares with a map of Go, and holds it to at most half full: a
// fuller one would take many steps for an index that is not in it.
func TestIndexMap(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 0))
	s, want := newIndexMap(), map[Index]int32{}
	var found []belief
	for i := range int32(5000) {
		k := Index(1 + r.Uint64N(4000))
		if r.IntN(2) == 0 {
			k = randomIndex(r)
		}
		number, held := want[k]
		if !held {
			number = -1
		}
		if got := s.get(k, found); got != number {
			t.Fatalf("index %d has number %d, want %d", k, got, number)
		}
		found = append(found, belief{index: k})
		if s.set(i, found); s.get(k, found) != i {
			t.Fatalf("index %d has number %d, want %d", k, s.get(k, found), i)
		}
		want[k] = i
		if s.used != len(want) || 2*s.used > len(s.slots) {
			t.Fatalf("%d of %d indices in %d slots", s.used, len(want), len(s.slots))
		}
	}
}

// Two indices of one hash have each a place of its own.
func TestIndexMapOfOneHash(t *testing.T) {
	m, found := newIndexMap(), []belief{{index: 5}}
	m.set(0, found)
	if s := m.place(7, m.hash(5), found); s.number != 0 {
		t.Error("another index of that hash is taken for the one that is there")
	}
}
