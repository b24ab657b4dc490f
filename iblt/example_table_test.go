package iblt_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/syncd-io/syncd/iblt"
)

// A table for ten pairs holds a thousand for a while.
func ExampleTable() {
	t, err := iblt.NewTable(iblt.TableConfig{Cells: 60, Hashes: 4, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	for x := range uint64(1000) {
		t.Insert(x, x*x)
	}
	fmt.Println("all listed:", t.ListEntries().Complete)
	for x := range uint64(997) {
		t.Delete(x, x*x)
	}
	t.Delete(4711, 7) // was never inserted
	fmt.Println(t.Get(998))
	all := t.ListEntries()
	slices.SortFunc(all.Inserted, func(a, b iblt.Entry) int { return cmp.Compare(a.Key, b.Key) })
	fmt.Println("all listed:", all.Complete)
	fmt.Println("inserted:", all.Inserted)
	fmt.Println("deleted:", all.Deleted)
	// Output:
	// all listed: false
	// 996004 found
	// all listed: true
	// inserted: [{997 994009 1} {998 996004 1} {999 998001 1}]
	// deleted: [{4711 7 1}]
}

// Alice sends a table of her files' checksums, in one message. Bob takes out
// his, and finds what differs.
func ExampleTable_Unpoison() {
	config, err := iblt.ConfigFor(10, 1e-3) // at most ten differences
	if err != nil {
		fmt.Println(err)
		return
	}
	config.Seed = 1
	alice := map[uint64]uint64{1: 100, 2: 200, 3: 300, 5: 500}
	bob := map[uint64]uint64{1: 100, 2: 222, 3: 300, 4: 400}
	table := func(files map[uint64]uint64) *iblt.Table {
		t, err := iblt.NewTable(config)
		if err != nil {
			panic(err) // ConfigFor made it
		}
		for file, checksum := range files {
			t.Insert(file, checksum)
		}
		return t
	}
	message, err := table(alice).MarshalBinary()
	if err != nil {
		fmt.Println(err)
		return
	}

	var t iblt.Table
	if err := t.UnmarshalBinary(message); err != nil {
		fmt.Println(err)
		return
	}
	if err := t.Subtract(table(bob)); err != nil {
		fmt.Println(err)
		return
	}
	r, err := t.Unpoison(maps.All(bob))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("only Alice:", r.Inserted)
	fmt.Println("only Bob:", r.Deleted)
	fmt.Println("different:", r.Mismatched, "complete:", r.Complete)
	// Output:
	// only Alice: [{5 500 1}]
	// only Bob: [{4 400 1}]
	// different: [{2 200 222}] complete: true
}

// The same with a division for each file that differs, where Unpoison tries all
// of Bob's.
func ExampleTable_Solve() {
	config, err := iblt.ConfigFor(10, 1e-3)
	if err != nil {
		fmt.Println(err)
		return
	}
	config.Seed, config.Sums, config.Checks = 1, iblt.XOR, iblt.CheckProducts
	t, err := iblt.NewTable(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	alice := map[uint64]uint64{1: 100, 2: 200, 3: 300, 5: 500}
	bob := map[uint64]uint64{1: 100, 2: 222, 3: 300, 4: 400}
	for file, checksum := range alice {
		t.Insert(file, checksum)
	}
	for file, checksum := range bob {
		t.Delete(file, checksum)
	}
	r, err := t.Solve(func(file uint64) (uint64, bool) {
		checksum, ok := bob[file]
		return checksum, ok
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("only Alice:", r.Inserted)
	fmt.Println("only Bob:", r.Deleted)
	fmt.Println("different:", r.Mismatched, "complete:", r.Complete)
	// Output:
	// only Alice: [{5 500 1}]
	// only Bob: [{4 400 1}]
	// different: [{2 200 222}] complete: true
}

// A table of five datagrams is listed though one was lost.
func ExampleTable_Lose() {
	t, err := iblt.NewTable(iblt.TableConfig{Cells: 50, Hashes: 5, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	for x := range uint64(10) {
		t.Insert(x, x)
	}
	if err := t.Lose(3); err != nil {
		fmt.Println(err)
		return
	}
	all := t.ListEntries()
	fmt.Println(len(all.Inserted), all.Complete)
	// Output:
	// 10 true
}

// How many cells list 1,000 differences, and how many answer look-ups of 1,000
// keys at least 97 times in 100?
func ExampleConfigFor() {
	config, err := iblt.ConfigFor(1000, 1e-6)
	fmt.Println(config.Cells, "cells,", config.Hashes, "hashes,", err)
	fmt.Printf("threshold: %.3f cells a key\n", config.Threshold())
	lookUps := iblt.TableConfig{Cells: 8000, Hashes: 5}
	fmt.Println("capacity:", lookUps.Capacity())
	// Output:
	// 1540 cells, 5 hashes, <nil>
	// threshold: 1.425 cells a key
	// capacity: 5614
}
