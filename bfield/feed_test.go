package bfield

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/bfield/keyed"
)

// A field of which others remember the keys: it grows by copies, is repaired from
// a feed, and answers then as one that was built at once.
func TestRepairedFrom(t *testing.T) {
	const n = 20_000
	r := rand.New(rand.NewPCG(9, 10))
	keys, values := make([]uint64, n), make([]uint64, n)
	for i := range keys {
		keys[i], values[i] = r.Uint64(), r.Uint64N(256)
	}
	c := Config{Keys: n, Values: 256, FalsePositive: 1. / 256, Nu: 24, Kappa: 2, Hashes: 8, CellsPerKey: 11.6}
	f, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	feed := func(yield func(key keyed.Key, value uint64) bool) error {
		for _, i := range r.Perm(n) {
			yield(keyed.Number(keys[i]), values[i])
			yield(keyed.Number(r.Uint64()), r.Uint64N(256)) // strangers do no harm
		}
		return nil
	}
	for from := 0; from < n; from += 1000 {
		before := f
		if f, err = f.With(keyed.Numbers(keys[from:from+1000]), values[from:from+1000]); err != nil {
			t.Fatal(err)
		}
		if before.Stats().Keys != uint64(from) {
			t.Fatal("the field that was copied has changed")
		}
		if from == 9000 {
			if f, err = f.RepairedFrom(feed); err != nil {
				t.Fatal(err)
			}
			// More is inserted into one that was saved, too.
			path := filepath.Join(t.TempDir(), "field")
			if err := f.Save(path); err != nil {
				t.Fatal(err)
			}
			opened, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			f = opened
		}
	}
	doubtful := 0
	for i, k := range keys {
		v, a := f.Lookup(keyed.Number(k))
		switch {
		case a == Found && v == values[i]:
		case a == Indeterminate && slices.Contains(f.Candidates(keyed.Number(k)), values[i]):
			doubtful++
		default:
			t.Fatalf("key %d before repair: %d, %v", i, v, a)
		}
	}
	if doubtful < n/50 {
		t.Errorf("%d keys are indeterminate, too few for this test", doubtful)
	}
	if f, err = f.RepairedFrom(feed); err != nil {
		t.Fatal(err)
	}
	built, err := Build(c, keyed.Numbers(keys), values)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range append(keys, keys[0]+1, keys[1]+1, keys[2]+1) {
		v, a := f.Lookup(keyed.Number(k))
		if i < n && (a != Found || v != values[i]) {
			t.Fatalf("key %d after repair: %d, %v", i, v, a)
		}
		if wantV, want := built.Lookup(keyed.Number(k)); i < n && (v != wantV || a != want) {
			t.Fatalf("key %d: %d, %v; built at once %d, %v", i, v, a, wantV, want)
		}
	}
	if s := f.Stats(); !s.Repaired || s.Keys != n {
		t.Errorf("%+v", s)
	}
}

func TestFeedRefusals(t *testing.T) {
	f, err := New(Config{Keys: 100, Values: 4, Nu: 8, Kappa: 1, Hashes: 1, CellsPerKey: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.With(keyed.Numbers([]uint64{1}), nil); !errors.Is(err, ErrConfig) {
		t.Errorf("a key without a value: %v", err)
	}
	if _, err := f.With(keyed.Numbers([]uint64{1}), []uint64{4}); !errors.Is(err, ErrValue) {
		t.Errorf("a value of θ: %v", err)
	}
	failed := errors.New("failed")
	if _, err := f.RepairedFrom(func(func(keyed.Key, uint64) bool) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("a feed that fails: %v", err)
	}
	if _, err := f.RepairedFrom(func(yield func(keyed.Key, uint64) bool) error {
		yield(keyed.Number(1), 4)
		return nil
	}); !errors.Is(err, ErrValue) {
		t.Errorf("a feed with a value of θ: %v", err)
	}
	// One key with two values, both inserted: no array can tell them apart.
	g, err := f.With(keyed.Numbers([]uint64{1, 1}), []uint64{2, 3})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.RepairedFrom(func(yield func(keyed.Key, uint64) bool) error {
		yield(keyed.Number(1), 2)
		yield(keyed.Number(1), 3)
		return nil
	}); !errors.Is(err, ErrContradiction) {
		t.Errorf("a key with two values: %v", err)
	}
}
