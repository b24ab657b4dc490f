package kvstore

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// TestLookupInParts looks up so many indices at once that several goroutines
// share the work, and expects what single look-ups have found: of those that
// are there, of those that are not, and of those that no key has. Goroutines
// that get in each other's way are seen by chance only, so it goes on a while.
func TestLookupInParts(t *testing.T) {
	_, n := openTest(t, t.TempDir(), Options{}, nil)
	rng := rand.New(rand.NewPCG(5, 0))
	var indices []dbadapter.Index
	var batch []dbadapter.Write
	for i := range 300 {
		w := write(fmt.Sprint("key ", i), i)
		batch = append(batch, w...)
		indices = append(indices, n.Hasher.Index(w[0].Record.Key), dbadapter.Index(1+rng.Uint64N(maxIndex)))
	}
	indices = append(indices, 0, maxIndex, maxIndex+1)
	apply(t, n, batch)
	s := snapshotOf(t, n)
	found, want := 0, map[dbadapter.Index]dbadapter.Checksum{}
	for _, i := range indices {
		one := []dbadapter.Checksum{1}
		if err := s.Lookup([]dbadapter.Index{i}, one); err != nil {
			t.Fatal(err)
		}
		if want[i] = one[0]; one[0] != 0 {
			found++
		}
	}
	if found != len(batch) {
		t.Fatalf("%d of %d indices are found one by one", found, len(batch))
	}
	for range 200 {
		rng.Shuffle(len(indices), func(i, j int) { indices[i], indices[j] = indices[j], indices[i] })
		sums := make([]dbadapter.Checksum, len(indices))
		if err := s.Lookup(indices, sums); err != nil {
			t.Fatal(err)
		}
		for at, i := range indices {
			if sums[at] != want[i] {
				t.Fatalf("index %d has the checksum %d among %d others, and %d alone", i, sums[at], len(indices)-1, want[i])
			}
		}
	}
}
