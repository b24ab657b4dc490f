package main

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/syncd-io/syncd/bfield"
)

// codes compares a field of all codes of ν bits with fields whose markers of three bits
// share at most one, for 256 values and α near 2^-8. A look-up of the latter finds the
// marker that is in the window, if it is the only one.
func codes(keys, strangers int, r *rand.Rand) {
	const values = 256
	plain, err := bfield.NewPlan(bfield.Config{Keys: uint64(keys), Values: values, FalsePositive: 1.0 / values})
	if err != nil {
		panic(err)
	}
	fmt.Println("\n| code | k | first array, bits a key | α | β | bits a key, m·κ/(1−β) | markers |")
	fmt.Println("|---|---|---|---|---|---|---|")
	all := make([]uint64, bfield.Codes(plain.Nu, plain.Kappa))
	for i := range all {
		if all[i], err = bfield.Encode(uint64(i)+1, plain.Nu, plain.Kappa); err != nil {
			panic(err)
		}
	}
	size := plain.CellsPerKey * float64(plain.Kappa)
	name := fmt.Sprintf("ν %d, κ %d, all", plain.Nu, plain.Kappa)
	coded(name, keys, strangers, newField(size*float64(keys), plain.Hashes, plain.Nu, false), all, values, r)
	triples, nu := apart(values)
	// A density of ones d takes −3k/ln(1−d) bits a key; these come near to 2^-8.
	for _, c := range []struct {
		k       int
		density float64
	}{{5, 0.468}, {6, 0.531}, {7, 0.579}} {
		size := -3 * float64(c.k) / math.Log1p(-c.density)
		name := fmt.Sprintf("ν %d, κ 3, sharing one at most", nu)
		coded(name, keys, strangers, newField(size*float64(keys), c.k, nu, false), triples, values, r)
	}
}

// apart returns n markers of three bits, any two of which share at most one: the first
// ones in lexicographic order, and their length.
func apart(n int) (markers []uint64, nu int) {
	for value := uint64(1); len(markers) < n; value++ {
		m, err := bfield.Encode(value, bfield.MaxNu, 3)
		if err != nil {
			panic(err)
		}
		fits := true
		for _, o := range markers {
			fits = fits && bits.OnesCount64(o&m) <= 1
		}
		if fits {
			markers, nu = append(markers, m), max(nu, bits.Len64(m))
		}
	}
	return markers, nu
}

// coded fills a field, asks for its keys and for strangers, and prints a row. Where
// there are more markers than values, the others are no answers.
func coded(name string, keys, strangers int, f *field, markers []uint64, values int, r *rand.Rand) {
	held := make([]uint64, keys)
	for i := range held {
		held[i] = r.Uint64()
		f.insert(held[i], markers[r.IntN(len(markers))])
	}
	within := func(key uint64) (n int) {
		acc := f.common(key)
		if bits.OnesCount64(acc) < bits.OnesCount64(markers[0]) {
			return 0
		}
		for _, m := range markers {
			if acc&m == m {
				n++
			}
		}
		return n
	}
	unsure, found := 0, 0
	for _, k := range held {
		if within(k) > 1 {
			unsure++
		}
	}
	for range strangers {
		if within(r.Uint64()) == 1 {
			found++
		}
	}
	valid := float64(values) / float64(len(markers))
	size, beta := float64(64*(len(f.words)-1))/float64(keys), float64(unsure)/float64(keys)
	fmt.Printf("| %s | %d | %.2f | %.4g ± %.1g | %.4f | %.2f | %d |\n", name, f.k, size,
		valid*float64(found)/float64(strangers), valid*interval(found, strangers), beta, size/(1-beta), len(markers))
}
