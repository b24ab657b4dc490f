package bfield

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/bfield/keyed"
)

// A field of which others remember the keys: it grows in place, is repaired from
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
		for i, k := range keys[from : from+1000] {
			before := Found
			for ; before != Absent; keys[from+i], k = k, r.Uint64() { // one that it takes for no other
				if before, _, err = f.Add(keyed.Number(k), values[from+i]); err != nil {
					t.Fatal(err)
				}
			}
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

// A field that is built of a feed is that of Build; and keys are added to it in place: none of
// them is Absent then, and what Add says of each is true.
func TestBuildFromAndAdd(t *testing.T) {
	const n, more = 20_000, 5000
	r := rand.New(rand.NewPCG(11, 12))
	keys, values := make([]uint64, n+more), make([]uint64, n+more)
	for i := range keys {
		keys[i], values[i] = r.Uint64(), r.Uint64N(256)
	}
	c := Config{Keys: n, Values: 256, Nu: 24, Kappa: 2, Hashes: 8, CellsPerKey: 11.6, Seed: 5}
	f, err := BuildFrom(c, func(yield func(key keyed.Key, value uint64) bool) error {
		for _, i := range r.Perm(n) {
			yield(keyed.Number(keys[i]), values[i])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	built, err := Build(c, keyed.Numbers(keys[:n]), values[:n])
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		v, a := f.Lookup(keyed.Number(k))
		if wantV, want := built.Lookup(keyed.Number(k)); v != wantV || a != want {
			t.Fatalf("%d, %v; built at once %d, %v", v, a, wantV, want)
		}
	}
	added := 0
	for i, k := range keys[n:] {
		was, answer := f.Lookup(keyed.Number(k))
		before, right, err := f.Add(keyed.Number(k), values[n+i])
		if err != nil || before != answer {
			t.Fatalf("%v before, and Add says %v: %v", answer, before, err)
		}
		if before == Absent {
			added++
		} else if v, a := f.Lookup(keyed.Number(k)); v != was || a != answer {
			t.Fatalf("a key that was known is %d, %v, not %d, %v", v, a, was, answer)
		}
		if v, a := f.Lookup(keyed.Number(k)); right != (a == Found && v == values[n+i]) || a == Absent {
			t.Fatalf("right: %v; %d, %v, not %d", right, v, a, values[n+i])
		}
	}
	wrong, asked := 0, 0
	for i, k := range keys[:n] {
		switch v, a := f.Lookup(keyed.Number(k)); {
		case a == Absent:
			t.Fatalf("key %d is absent", i)
		case a == Indeterminate:
			asked++
		case v != values[i]:
			wrong++
		}
	}
	if s := f.Stats(); added < more*95/100 || s.Keys != uint64(n+added) || s.Repaired || asked == 0 || asked > n/4 || wrong > 5 {
		t.Errorf("%d added, %d indeterminate, %d wrong: %+v", added, asked, wrong, s)
	}
	if _, _, err := f.Add(keyed.Number(1), 256); !errors.Is(err, ErrValue) {
		t.Errorf("a value of θ: %v", err)
	}
}

func TestFeedRefusals(t *testing.T) {
	f, err := New(Config{Keys: 100, Values: 4, Nu: 8, Kappa: 1, Hashes: 1, CellsPerKey: 1})
	if err != nil {
		t.Fatal(err)
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
	if _, err := BuildFrom(Config{Keys: 9, Values: 4, Nu: 8, Kappa: 1, Hashes: 1, CellsPerKey: 1}, func(yield func(keyed.Key, uint64) bool) error {
		yield(keyed.Number(1), 4)
		return nil
	}); !errors.Is(err, ErrValue) {
		t.Errorf("a build of a value of θ: %v", err)
	}
	if _, err := BuildFrom(Config{Keys: 9}, nil); !errors.Is(err, ErrConfig) {
		t.Errorf("a build of no values: %v", err)
	}
	if _, err := BuildFrom(Config{Keys: 9, Values: 4, FalsePositive: 0.1}, func(func(keyed.Key, uint64) bool) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("a build of a feed that fails: %v", err)
	}
	// One key with two values, both inserted: no array can tell them apart.
	if err := errors.Join(f.Insert(keyed.Number(1), 2), f.Insert(keyed.Number(1), 3)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.RepairedFrom(func(yield func(keyed.Key, uint64) bool) error {
		yield(keyed.Number(1), 2)
		yield(keyed.Number(1), 3)
		return nil
	}); !errors.Is(err, ErrContradiction) {
		t.Errorf("a key with two values: %v", err)
	}
}
