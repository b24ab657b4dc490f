package iblt_test

import (
	"fmt"

	"github.com/syncd-io/syncd/iblt"
)

// A look-up has three answers: a table of few cells does not know every key.
func ExampleTable_Get() {
	t, err := iblt.NewTable(iblt.TableConfig{Cells: 40, Hashes: 4, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	for x := range uint64(10) {
		t.Insert(x, 100+x)
	}
	fmt.Println(t.Get(7))
	fmt.Println(t.Get(4711))
	for x := range uint64(90) {
		t.Insert(1000+x, x)
	}
	fmt.Println(t.Get(7)) // a hundred keys in 40 cells: each of its cells holds others too
	// Output:
	// 107 found
	// 0 absent
	// 0 unknown
}

// Two tables that were configured alike are subtracted; what is left lists what
// only the one or only the other holds, however much they have in common.
func ExampleTable_Subtract() {
	config := iblt.TableConfig{Cells: 60, Hashes: 4, Seed: 1}
	table := func(from, to uint64) *iblt.Table {
		t, err := iblt.NewTable(config)
		if err != nil {
			panic(err)
		}
		for x := from; x < to; x++ {
			t.Insert(x, x*x)
		}
		return t
	}
	theirs, ours := table(0, 100_000), table(2, 100_001)
	if err := theirs.Subtract(ours); err != nil {
		fmt.Println(err)
		return
	}
	all := theirs.ListEntries()
	fmt.Println(len(all.Inserted), "theirs,", len(all.Deleted), "ours, complete:", all.Complete)
	// Output: 2 theirs, 1 ours, complete: true
}

// A few keys in many cells, and the rest in three, are listed from fewer cells
// than with any one number of hashes.
func ExampleIrregular() {
	mixed := iblt.TableConfig{Cells: 1200, Placement: iblt.Distinct, Degrees: iblt.Irregular()}
	fmt.Printf("%.3f cells a key, where three hashes take %.3f\n", mixed.Threshold(), iblt.TableConfig{Hashes: 3}.Threshold())
	t, err := iblt.NewTable(mixed)
	if err != nil {
		fmt.Println(err)
		return
	}
	for x := range uint64(1000) {
		t.Insert(x, x)
	}
	fmt.Println("1,000 keys from 1,200 cells:", t.ListEntries().Complete)
	// Output:
	// 1.088 cells a key, where three hashes take 1.222
	// 1,000 keys from 1,200 cells: true
}
