package bfield

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/bfield/keyed"
)

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
	f.mark(entry{f.keyOf(keyed.Number(1)), 2})
	f.mark(entry{f.keyOf(keyed.Number(1)), 3})
	if _, err := f.RepairedFrom(func(yield func(keyed.Key, uint64) bool) error {
		yield(keyed.Number(1), 2)
		yield(keyed.Number(1), 3)
		return nil
	}); !errors.Is(err, ErrContradiction) {
		t.Errorf("a key with two values: %v", err)
	}
}
