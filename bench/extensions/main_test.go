package main

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/bfield"
)

// Any two markers share one bit at most, and there are as many as asked for.
func TestApart(t *testing.T) {
	markers, nu := apart(256)
	if len(markers) != 256 || nu > bfield.MaxNu {
		t.Fatalf("%d markers of %d bits", len(markers), nu)
	}
	for i, a := range markers {
		for _, b := range markers[:i] {
			if bits.OnesCount64(a) != 3 || bits.OnesCount64(a&b) > 1 {
				t.Fatalf("markers %b and %b", a, b)
			}
		}
	}
}

// The model of windows in one line is within a tenth of what is measured, and the field
// misses no key.
func TestLineRate(t *testing.T) {
	const keys, strangers, seed = 50_000, 1_000_000, 3
	p, err := bfield.NewPlan(bfield.Config{Keys: keys, Values: 16, FalsePositive: 1.0 / 64})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 0))
	all := bfield.Codes(p.Nu, p.Kappa)
	f := newField(p.CellsPerKey*float64(p.Kappa)*keys, p.Hashes, p.Nu, true)
	for range keys {
		k := r.Uint64()
		code, err := bfield.Encode(1+r.Uint64N(all), p.Nu, p.Kappa)
		if err != nil {
			t.Fatal(err)
		}
		f.insert(k, code)
		if f.common(k)&code != code {
			t.Fatalf("key %x is not found (seed %d)", k, seed)
		}
	}
	found := 0
	for range strangers {
		if bits.OnesCount64(f.common(r.Uint64())) == p.Kappa {
			found++
		}
	}
	got, want := float64(found)/strangers*16/float64(all), lineRate(p)
	if math.Abs(got/want-1) > 0.1 || want < 1.2/64 {
		t.Errorf("measured %.5f, the model says %.5f; anywhere %.5f (seed %d)", got, want, p.FalsePositive(), seed)
	}
}
