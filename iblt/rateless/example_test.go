package rateless_test

import (
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/iblt/rateless"
)

// Two sets of a hundred pairs differ in three.
func Example() {
	key := rateless.Key{1, 2, 3} // shared by both sides
	theirs, ours := rateless.NewSketch(key, 1024), rateless.NewSketch(key, 1024)
	local := map[rateless.Index]rateless.Checksum{}
	pair := func(index rateless.Index, content uint64) rateless.Pair {
		return rateless.Pair{Index: index, Checksum: rateless.Seal(index, content)}
	}
	for i := range rateless.Index(100) {
		p := pair(1000+i, 7)
		theirs.Add(p)
		ours.Add(p)
		local[p.Index] = p.Checksum
	}
	theirs.Add(pair(1, 11))
	ours.Add(pair(2, 22))
	local[2] = rateless.Seal(2, 22)
	theirs.Replace(pair(1050, 7), pair(1050, 8))

	decoder := rateless.NewDecoder(ours, func(indices []rateless.Index, sums []rateless.Checksum) error {
		for i, k := range indices {
			sums[i] = local[k]
		}
		return nil
	})
	if err := decoder.AddCells(theirs.Prefix(32)); err != nil {
		fmt.Println(err)
		return
	}
	found := decoder.Differences()
	slices.SortFunc(found, func(a, b rateless.Difference) int { return int(a.Index) - int(b.Index) })
	fmt.Println("done:", decoder.Done())
	for _, d := range found {
		fmt.Printf("%s: index %d, theirs %d, ours %d\n", d.Kind, d.Index, d.Theirs.Rest(), d.Ours.Rest())
	}
	// Output:
	// done: true
	// missing here: index 1, theirs 11, ours 0
	// missing there: index 2, theirs 0, ours 22
	// mismatched: index 1050, theirs 8, ours 7
}

// Cells come as a stream: what does not suffice is followed by more.
func ExampleDecoder_AddCells() {
	key := rateless.Key{}
	theirs, ours := rateless.NewSketch(key, 4096), rateless.NewSketch(key, 4096)
	for i := range rateless.Index(1000) {
		k := 1 + i*i*i
		theirs.Add(rateless.Pair{Index: k, Checksum: rateless.Seal(k, 5)})
	}
	nothing := func(_ []rateless.Index, sums []rateless.Checksum) error { clear(sums); return nil }
	decoder := rateless.NewDecoder(ours, nothing)
	for !decoder.Done() {
		from := decoder.Cells()
		cells, err := theirs.Cells(from, from+128)
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := decoder.AddCells(cells); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(len(decoder.Differences()), "differences from at most", 1280, "cells:", decoder.Cells() <= 1280)
	// Output: 1000 differences from at most 1280 cells: true
}

// 256 bytes of each side tell how many differences there are.
func ExampleEstimate() {
	key := rateless.Key{}
	theirs, ours := rateless.NewSketch(key, 128), rateless.NewSketch(key, 128)
	for i := range rateless.Index(10_000) {
		k := 1 + i*i*i
		p := rateless.Pair{Index: k, Checksum: rateless.Seal(k, 5)}
		theirs.Add(p)
		if i >= 2000 {
			ours.Add(p)
		}
	}
	d, ok := rateless.Estimate(theirs.Estimator(), ours.Estimator())
	fmt.Println(d > 1300 && d < 2700, ok)
	// Output: true true
}

// A sketch that has become too short grows by a window of the same sequence.
func ExampleSketch_Append() {
	key := rateless.Key{}
	pairs := []rateless.Pair{{Index: 3, Checksum: rateless.Seal(3, 4)}, {Index: 5, Checksum: rateless.Seal(5, 6)}}
	sketch, tail := rateless.NewSketch(key, 64), rateless.NewWindow(key, 64, 256)
	for _, p := range pairs {
		sketch.Add(p)
		tail.Add(p)
	}
	sketch.Append(tail)
	fmt.Println(sketch.Len())
	// Output: 256
}
