package kvstore

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
)

// What a snapshot from before a commit has not found says nothing about what the
// commit has written: an older version of the key stays out.
func TestLookUpsOfAnOldSnapshot(t *testing.T) {
	_, n := openTest(t, t.TempDir(), Options{}, nil)
	old, err := n.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	newer, older := write("k", 2), write("k", 1)
	for what, look := range map[string]func() error{
		"Get":     func() error { _, err := old.Get([]byte("k")); return err },
		"Buckets": func() error { _, err := old.Buckets([]dbadapter.Index{newer[0].Record.Index}); return err },
	} {
		if _, err := n.Apply(t.Context(), newer); err != nil {
			t.Fatal(err)
		}
		_ = look() // whether or not it is an error that there is nothing
		if o, err := n.Apply(t.Context(), older); err != nil || o[0].Result != dbadapter.Dominated {
			t.Errorf("%s: an older version was %+v, %v", what, o, err)
		}
	}
}

// A key that was looked up, found or not, is written without another look-up of its
// index, once; reads of old and new snapshots and writes in any order decide the same
// as a map.
func TestLookUpsAreRemembered(t *testing.T) {
	_, n := openTest(t, t.TempDir(), Options{}, nil)
	if s, err := n.Snapshot(); err != nil {
		t.Fatal(err)
	} else if _, err = s.Buckets([]dbadapter.Index{1, 2}); err != nil || len(n.looked.found) > 0 {
		t.Errorf("a new namespace remembers %v, of which its filter says that there is nothing; %v", n.looked.found, err)
	} else {
		s.Close()
	}
	n.written.layers.Store(nil) // as in one that held records
	look := func(s dbadapter.Snapshot, key string) {
		if _, err := s.Buckets([]dbadapter.Index{n.hasher.Index([]byte(key))}); err != nil {
			t.Fatal(err)
		}
	}
	k := n.hasher.Index([]byte("k"))
	for held := range 3 { // the second of the write before
		s, err := n.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		look(s, "k")
		s.Close()
		indices, loaded := []dbadapter.Index{k, maxIndex}, make([]commit.Loaded, 2)
		rest := n.looked.load(indices, loaded, indices)
		if len(rest) != 1 || rest[0] != maxIndex {
			t.Errorf("after a look-up the committer still reads %v", rest)
		}
		if known := loaded[0].Held; len(known) != min(held, 1) || held > 0 && known[0].Record.Version != write("k", held)[0].Record.Version {
			t.Errorf("after a look-up of what write %d has left, %+v is known", held, known)
		}
		if o, err := n.Apply(t.Context(), write("k", held+1)); err != nil || o[0].Result != dbadapter.Applied {
			t.Fatal(o, err)
		}
		if rest := n.looked.load(indices[:1], loaded[:1], indices[:1]); len(rest) != 1 {
			t.Error("after a write the committer does not read what it has written")
		}
	}

	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	newest := map[string]int{"k": 3}
	var snapshots []dbadapter.Snapshot
	defer func() {
		for _, s := range snapshots {
			s.Close()
		}
	}()
	for step := range 2000 {
		key := fmt.Sprint(rng.IntN(600))
		switch rng.IntN(4) {
		case 0:
			s, err := n.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			if snapshots = append(snapshots, s); len(snapshots) > 3 {
				snapshots[0].Close()
				snapshots = snapshots[1:]
			}
		case 1:
			if len(snapshots) > 0 {
				look(snapshots[rng.IntN(len(snapshots))], key)
			}
		default:
			at := 1 + rng.IntN(1000)
			o, err := n.Apply(t.Context(), write(key, at))
			if err != nil {
				t.Fatal(err)
			}
			want := dbadapter.Applied
			switch held := newest[key]; {
			case at == held:
				want = dbadapter.Same
			case at < held:
				want = dbadapter.Dominated
			default:
				newest[key] = at
			}
			if o[0].Result != want {
				t.Fatalf("seed %d, step %d: %q at %d was %+v, want %d", seed, step, key, at, o, want)
			}
		}
	}
	bytes := 0
	for _, held := range n.looked.found {
		bytes += weightOf(held)
	}
	if n.looked.bytes != bytes {
		t.Errorf("seed %d: %d bytes are counted, %d are remembered", seed, n.looked.bytes, bytes)
	}
	n.looked.restart(n.looked.seq) // a store that is made anew may have lost records
	if len(n.looked.found) > 0 || n.looked.bytes != 0 {
		t.Error("what was found in a store is remembered when it has been made anew")
	}
}

// What is remembered is bounded: by the number of indices, and by the records' size.
func TestLookUpsAreBounded(t *testing.T) {
	large := []commit.Loaded{{Held: []commit.Held{{Record: dbadapter.Hashed{Record: dbadapter.Record{Value: make([]byte, mostLookedBytes/3)}}}}}}
	var l looked
	for i := range 10 * mostLooked {
		read := make([]commit.Loaded, 1)
		if i%100 == 0 {
			read = large
		}
		l.note(0, []dbadapter.Index{dbadapter.Index(i)}, read)
		if len(l.found) > mostLooked || l.bytes > mostLookedBytes || l.found[dbadapter.Index(i)] == nil && i%100 == 0 {
			t.Fatalf("after %d look-ups %d indices and %d bytes are remembered", i+1, len(l.found), l.bytes)
		}
	}
	l.note(0, []dbadapter.Index{1, 2, 3, 4}, []commit.Loaded{large[0], large[0], large[0], large[0]})
	if l.found[1] != nil || l.bytes > mostLookedBytes {
		t.Error("more than the bound is remembered of one look-up")
	}
}
