package bfield_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/syncd-io/syncd/bfield"
	"github.com/syncd-io/syncd/bfield/keyed"
)

// TestUnion builds a set in three parts, unites them, repairs, and compares with the
// set built as a whole: each bit is the same.
func TestUnion(t *testing.T) {
	const n = 30_000
	c := bfield.Config{Keys: n, Values: 256, FalsePositive: 1.0 / 256, Seed: 3}
	keys, values := make([]uint64, n), make([]uint64, n)
	for i := range keys {
		keys[i], values[i] = uint64(i)*0x9e3779b97f4a7c15, uint64(i*i%256)
	}
	whole, err := bfield.Build(c, keyed.Numbers(keys), values)
	if err != nil {
		t.Fatal(err)
	}
	var united *bfield.Field
	for part := range 3 {
		from, end := part*n/3, (part+1)*n/3
		f, err := bfield.Build(c, keyed.Numbers(keys[from:end]), values[from:end])
		if err != nil {
			t.Fatal(err)
		}
		if united == nil {
			united = f
			continue
		}
		parts, before := []*bfield.Field{united, f}, [2][]byte{}
		for i, g := range parts {
			before[i], _ = g.MarshalBinary()
		}
		if united, err = united.Union(f); err != nil {
			t.Fatal(err)
		}
		for i, g := range parts {
			if after, _ := g.MarshalBinary(); !bytes.Equal(before[i], after) {
				t.Errorf("uniting changed field %d", i)
			}
		}
	}
	if united.Stats().Repaired {
		t.Error("a union says that it is repaired")
	}
	unsure := 0
	for i, k := range keys {
		switch v, answer := united.Lookup(keyed.Number(k)); {
		case answer == bfield.Indeterminate:
			unsure++
		case answer != bfield.Found || v != values[i]:
			t.Fatalf("before the repair, key %d is %d, %v; want %d", i, v, answer, values[i])
		}
	}
	// Of the keys the part β is indeterminate: within five standard deviations.
	if beta := united.Plan().Indeterminate(); float64(unsure) < 0.8*beta*n || float64(unsure) > 1.2*beta*n {
		t.Errorf("%d of %d keys are indeterminate; β is %.4f", unsure, n, beta)
	}
	repaired, err := united.RepairedFrom(func(yield func(key keyed.Key, value uint64) bool) error {
		for i, k := range keys {
			if !yield(keyed.Number(k), values[i]) {
				break
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := whole.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	b, err := repaired.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Error("the united field is another than the one built as a whole")
	}
}

// TestUnionOfTwoValues: of a key with two values no value is named, and a repair refuses it.
func TestUnionOfTwoValues(t *testing.T) {
	c := bfield.Config{Keys: 1000, Values: 256, FalsePositive: 1.0 / 256, Seed: 3}
	keys := make([]uint64, 500)
	var values [2][]uint64
	for i := range keys {
		keys[i] = uint64(i)
		values[0], values[1] = append(values[0], uint64(i%256)), append(values[1], uint64((i+1)%256))
	}
	var parts [2]*bfield.Field
	for i := range parts {
		var err error
		if parts[i], err = bfield.Build(c, keyed.Numbers(keys), values[i]); err != nil {
			t.Fatal(err)
		}
	}
	u, err := parts[0].Union(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if v, a := u.Lookup(keyed.Number(k)); a != bfield.Indeterminate {
			t.Fatalf("key %d, which has two values, is answered %d, %v", k, v, a)
		}
	}
	_, err = u.RepairedFrom(func(yield func(key keyed.Key, value uint64) bool) error {
		for _, values := range values {
			for i, k := range keys {
				yield(keyed.Number(k), values[i])
			}
		}
		return nil
	})
	if !errors.Is(err, bfield.ErrContradiction) {
		t.Errorf("repaired from keys with two values: %v", err)
	}
}

func TestUnionRefuses(t *testing.T) {
	c := bfield.Config{Keys: 100, Values: 16, FalsePositive: 0.01}
	f, err := bfield.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*bfield.Config){
		"another seed":   func(c *bfield.Config) { c.Seed = 1 },
		"more keys":      func(c *bfield.Config) { c.Keys = 101 },
		"another rate":   func(c *bfield.Config) { c.FalsePositive = 0.02 },
		"another values": func(c *bfield.Config) { c.Values = 15 },
	} {
		d := c
		change(&d)
		g, err := bfield.New(d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Union(g); !errors.Is(err, bfield.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
