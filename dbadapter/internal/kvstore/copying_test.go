package kvstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// fewIndices makes records share buckets.
type fewIndices struct{ dbadapter.Hasher }

func (f fewIndices) Index(key []byte) dbadapter.Index { return f.Hasher.Index(key)&31 + 1 }

func copyHasher(id dbadapter.NamespaceID) dbadapter.Hasher {
	h := dbadapter.NewHasher(dbadapter.Secret{id[0]})
	if id[0]%2 == 0 {
		return fewIndices{h}
	}
	return h
}

// entries are all entries of the open namespaces, by id, with what a copy changes
// left out: the log, its id, and where it begins.
func entries(t testing.TB, s *Store) map[string]string {
	t.Helper()
	out := map[string]string{}
	view := s.db.View()
	defer view.Close()
	for _, n := range s.life.Open() {
		prefix := binary.BigEndian.AppendUint32(nil, n.Number)
		it := view.Iterate(prefix)
		for it.Seek(prefix); it.Valid(); it.Next() {
			key, value := bytes.Clone(it.Key()), must(kv.Get(view, it.Key()))
			switch key[prefixSize-1] {
			case layout.KindLog:
				continue
			case layout.KindMeta:
				var m layout.Meta
				if err := m.Decode(value, n.Number); err != nil {
					t.Fatal(err)
				}
				m.First, m.Log = 0, 0
				value = m.Encode(n.Number)
			}
			out[fmt.Sprintf("%x/%q", n.ID[:1], key[prefixSize-1:])] = string(value)
		}
		it.Close()
	}
	return out
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func takeCopy(t testing.TB, s *Store, since []byte) ([]byte, dbadapter.Copied) {
	t.Helper()
	c, err := s.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var b bytes.Buffer
	copied, err := c.Copy(t.Context(), &b, since)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), copied
}

func readers(copies ...[]byte) iter.Seq2[io.Reader, error] {
	return func(yield func(io.Reader, error) bool) {
		for _, c := range copies {
			if !yield(bytes.NewReader(c), nil) {
				return
			}
		}
	}
}

// restored restores copies, opens the store and scans the namespaces that a
// source has open.
func restored(t testing.TB, source *Store, copies ...[]byte) *Store {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "restored")
	if err := Restore(t.Context(), dir, engine, Options{}, readers(copies...)); err != nil {
		t.Fatal(err)
	}
	s, err := openEngine(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for _, of := range source.life.Open() {
		n, err := s.Namespace(t.Context(), of.ID, copyHasher(of.ID), nil)
		if err != nil {
			t.Fatal(err)
		}
		scanAll(t, n)
	}
	return s
}

func scanAll(t testing.TB, n dbadapter.Namespace) (count int) {
	t.Helper()
	snap := snapshotOf(t, n)
	for _, err := range snap.Scan(t.Context(), nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		count++
	}
	for _, err := range n.Kept(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return count
}

// TestCopies makes random histories of several namespaces, with copies of which
// each follows the one before, and restores each line of them: the entries are
// those of the source at that moment.
func TestCopies(t *testing.T) {
	for range 2 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) { testCopies(t, seed) })
	}
}

func testCopies(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	var s *Store
	open := map[dbadapter.NamespaceID]dbadapter.Namespace{}
	add := func(id dbadapter.NamespaceID) {
		open[id] = must(s.Namespace(t.Context(), id, copyHasher(id), nil))
	}
	reopen := func() {
		if s != nil {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		s = must(openEngine(dir, Options{LogLimit: 200}))
		for id := range open {
			add(id)
		}
	}
	reopen()
	defer func() { s.Close() }()
	for id := range byte(3) {
		add(dbadapter.NamespaceID{id + 1})
	}
	clock := 0
	change := func(id dbadapter.NamespaceID, n dbadapter.Namespace) {
		h := copyHasher(id)
		key := fmt.Appendf(nil, "key %d", rng.IntN(60))
		snap := must(n.Snapshot())
		defer snap.Close()
		held, err := snap.Get(key)
		if err != nil && !errors.Is(err, dbadapter.ErrNotFound) {
			t.Fatal(err)
		}
		var w dbadapter.Write
		if action := rng.IntN(4); err == nil && action < 2 {
			w = dbadapter.Write{Record: hashed(h, held), If: &held.Version, Action: []dbadapter.Action{dbadapter.Collect, dbadapter.SetAside}[action]}
		} else {
			clock++
			size := rng.IntN(100)
			if rng.IntN(50) == 0 {
				size = dbadapter.MaxValue - rng.IntN(200) // some have a tail
			}
			w = dbadapter.Write{Record: hashed(h, dbadapter.Record{
				Key: key, Value: bytes.Repeat([]byte{byte(clock)}, size), Deleted: false,
				Version: dbadapter.Version{Clock: dbadapter.TimestampAt(time.Unix(1_780_000_000+int64(clock), 0)), Writer: dbadapter.WriterID(rng.IntN(2) + 1)},
			})}
		}
		apply(t, n, []dbadapter.Write{w})
	}
	var line [][]byte // from the last whole copy on
	var last dbadapter.Copied
	copies, increments, checked := 0, 0, 0
	for range 60 {
		ids := slices.SortedFunc(maps.Keys(open), func(a, b dbadapter.NamespaceID) int { return bytes.Compare(a[:], b[:]) })
		switch id := ids[rng.IntN(len(ids))]; rng.IntN(12) {
		case 0:
			reopen()
		case 1: // what the engine has deleted, it forgets
			if err := s.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
		case 2: // gone, and perhaps made anew
			if err := errors.Join(open[id].Close(), s.Drop(t.Context(), id)); err != nil {
				t.Fatal(err)
			}
			delete(open, id)
			if len(open) < 2 || rng.IntN(2) == 0 {
				add(id)
			}
		case 3:
			var seqs []uint64
			for k, err := range open[id].Kept(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if rng.IntN(2) == 0 {
					seqs = append(seqs, k.Seq)
				}
			}
			if err := open[id].Forget(t.Context(), seqs...); err != nil {
				t.Fatal(err)
			}
		case 4, 5, 6, 7:
			for range rng.IntN(120) {
				change(id, open[id])
			}
		default:
			b, copied := takeCopy(t, s, last.Mark)
			copies++
			if copied.Whole {
				line = nil
			} else {
				increments++
			}
			line = append(line, b)
			if rng.IntN(3) == 0 {
				want := entries(t, s)
				other := restored(t, s, line...)
				var next uint32 // dropped namespaces may still be erased, which changes the head
				if err := s.committer.do(t.Context(), func() error { next = s.committer.head.next; return nil }); err != nil {
					t.Fatal(err)
				}
				for number := uint32(1); number < next; number++ {
					if count, _ := left(t, other, number); count > 0 && !slices.ContainsFunc(other.life.Open(), func(n *namespace) bool { return n.Number == number }) {
						t.Errorf("%d entries of a namespace that was dropped", count)
					}
				}
				if got := entries(t, other); !maps.Equal(got, want) {
					t.Fatalf("after %d copies, %d increments: %s", copies, increments, difference(got, want))
				}
				other.Close()
				checked++
			}
			if rng.IntN(5) == 0 { // not settled: the next one follows no copy
				last.Mark = copied.Mark
				break
			}
			if err := s.Settle(t.Context(), copied.Mark); err != nil {
				t.Fatal(err)
			}
			last = copied
		}
	}
	t.Logf("%d copies, %d increments, %d restored", copies, increments, checked)
}

func difference(got, want map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if g, ok := got[k]; !ok {
			fmt.Fprintf(&b, "\nmissing %s", k)
		} else if g != want[k] {
			fmt.Fprintf(&b, "\nother %s: %x, want %x", k, g[:min(len(g), 100)], want[k][:min(len(want[k]), 100)])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[k]; !ok {
			fmt.Fprintf(&b, "\nextra %s", k)
		}
	}
	return b.String()
}
