package kvstore

import (
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
)

// A key that was looked up, found or not, is written without another look-up of its
// index, once.
func TestLookUpsAreRemembered(t *testing.T) {
	_, n := openTest(t, t.TempDir(), Options{}, nil)
	if s, err := n.Snapshot(); err != nil {
		t.Fatal(err)
	} else if _, err = s.Buckets([]dbadapter.Index{1, 2}); err != nil || len(n.cache.found) > 0 {
		t.Errorf("a new namespace remembers %v, of which its filter says that there is nothing; %v", n.cache.found, err)
	} else {
		s.Close()
	}
	n.written.layers.Store(nil) // as in one that held records
	look := func(s dbadapter.Snapshot, key string) {
		if _, err := s.Buckets([]dbadapter.Index{n.Hasher.Index([]byte(key))}); err != nil {
			t.Fatal(err)
		}
	}
	k := n.Hasher.Index([]byte("k"))
	for held := range 3 { // the second of the write before
		s, err := n.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		look(s, "k")
		s.Close()
		indices, loaded := []dbadapter.Index{k, maxIndex}, make([]commit.Loaded, 2)
		rest := n.cache.load(indices, loaded, indices)
		if len(rest) != 1 || rest[0] != maxIndex {
			t.Errorf("after a look-up the committer still reads %v", rest)
		}
		if known := loaded[0].Held; len(known) != min(held, 1) || held > 0 && known[0].Record.Version != write("k", held)[0].Record.Version {
			t.Errorf("after a look-up of what write %d has left, %+v is known", held, known)
		}
		if o, err := n.Apply(t.Context(), write("k", held+1)); err != nil || o[0].Result != dbadapter.Applied {
			t.Fatal(o, err)
		}
		if rest := n.cache.load(indices[:1], loaded[:1], indices[:1]); len(rest) != 1 {
			t.Error("after a write the committer does not read what it has written")
		}
	}

	for i := range 300 {
		v := snapshotOf(t, n)
		look(v, fmt.Sprint(i%40))
		v.Close()
		if i%3 > 0 {
			apply(t, n, write(fmt.Sprint(i%40), i))
		}
	}
	bytes := 0
	for _, held := range n.cache.found {
		bytes += weightOf(held)
	}
	if n.cache.bytes != bytes {
		t.Errorf("%d bytes are counted, %d are remembered", n.cache.bytes, bytes)
	}
	n.cache.restart(n.cache.seq) // a store that is made anew may have lost records
	if len(n.cache.found) > 0 || n.cache.bytes != 0 {
		t.Error("what was found in a store is remembered when it has been made anew")
	}
}

// What is remembered is bounded: by the number of indices, and by the records' size.
func TestLookUpsAreBounded(t *testing.T) {
	large := []commit.Loaded{{Held: []commit.Held{{Record: dbadapter.Hashed{Record: dbadapter.Record{Value: make([]byte, mostCachedBytes/3)}}}}}}
	var l readCache
	for i := range 10 * mostCached {
		read := make([]commit.Loaded, 1)
		if i%100 == 0 {
			read = large
		}
		l.note(0, []dbadapter.Index{dbadapter.Index(i)}, read)
		if len(l.found) > mostCached || l.bytes > mostCachedBytes || l.found[dbadapter.Index(i)] == nil && i%100 == 0 {
			t.Fatalf("after %d look-ups %d indices and %d bytes are remembered", i+1, len(l.found), l.bytes)
		}
	}
	l.note(0, []dbadapter.Index{1, 2, 3, 4}, []commit.Loaded{large[0], large[0], large[0], large[0]})
	if l.found[1] != nil || l.bytes > mostCachedBytes {
		t.Error("more than the bound is remembered of one look-up")
	}
}
