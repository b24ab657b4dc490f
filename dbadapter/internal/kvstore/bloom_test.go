package kvstore

import (
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// What was added is never said to be absent, over all layers; of what was not, at most
// a twentieth is taken for there. A filter that is full says nothing any more.
func TestBloom(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	var f bloom
	if !f.mayHold(1) {
		t.Error("the filter of a namespace that held records says that there is nothing")
	}
	f.layers.Store(&[]*layer{{make([]block, 2)}})
	var all []dbadapter.Change
	taken := 0
	for f.layers.Load() != nil && len(*f.layers.Load()) < 4 {
		some := make([]dbadapter.Change, 1+rng.IntN(500))
		for i := range some {
			some[i].Index = dbadapter.Index(1 + rng.Uint64N(1<<42-12))
		}
		for i := range some {
			if f.mayHold(some[i].Index) {
				taken++
			}
		}
		f.add(some)
		all = append(all, some...)
		for i := range some {
			some[i].Old = 1
		}
		f.add(some) // takes no room
		for range 50 {
			if i := all[rng.IntN(len(all))].Index; !f.mayHold(i) {
				t.Fatalf("seed %d: %d was added and is said to be absent", seed, i)
			}
		}
	}
	for i := range all {
		if !f.mayHold(all[i].Index) {
			t.Fatalf("seed %d: %d was added and is said to be absent", seed, all[i].Index)
		}
	}
	if taken > len(all)/20 {
		t.Errorf("seed %d: %d of %d were taken for there before they were", seed, taken, len(all))
	}
	if len(all) < (*f.layers.Load())[2].capacity() {
		t.Errorf("%d indices take 4 layers", len(all))
	}
	f.layers.Store(&[]*layer{{make([]block, bloomMost)}})
	f.added = (*f.layers.Load())[0].capacity()
	f.add(all[:1])
	if !f.mayHold(all[0].Index+1) || f.layers.Load() != nil {
		t.Error("a full filter still says that there is nothing")
	}
	f.add(all)
}

// The filter begins with a namespace that is new or that was never written to, and not
// with one that holds records, or has held some.
func TestBloomBegins(t *testing.T) {
	dir := t.TempDir()
	s, n := openTest(t, dir, Options{}, nil)
	absent := n.Hasher.Index([]byte("absent"))
	if n.written.mayHold(absent) {
		t.Error("a new namespace asks the database")
	}
	apply(t, n, write("k", 1))
	if n.written.mayHold(absent) || !n.written.mayHold(n.Hasher.Index([]byte("k"))) {
		t.Error("after a write the filter does not hold just what was written")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, n = openTest(t, dir, Options{}, nil)
	if !n.written.mayHold(absent) {
		t.Error("a namespace that was written to before takes nothing to be absent")
	}
}
