package cuckoo_test

import (
	"fmt"

	"github.com/syncd-io/syncd/bfield/cuckoo"
	"github.com/syncd-io/syncd/bfield/keyed"
)

func ExampleMap() {
	type Index uint64
	type Checksum uint64
	m, err := cuckoo.NewMap[Index, Checksum](cuckoo.MapConfig{Keys: 100_000})
	if err != nil {
		panic(err)
	}
	for i := range Index(100_000) {
		if err := m.Set(i, Checksum(3*i)); err != nil {
			panic(err)
		}
	}
	m.Delete(7)
	sums := make([]Checksum, 3)
	hits := m.GetBatch([]Index{7, 8, 9}, sums, nil)
	fmt.Println(hits, sums, m.Len())
	fmt.Println(m.Stats().Bytes/m.Len() < 13)
	// Output:
	// 2 [0 24 27] 99999
	// true
}

func ExampleTable() {
	t, err := cuckoo.New(cuckoo.Config{Keys: 1000, ValueBits: 4, FalsePositive: 0x1p-16})
	if err != nil {
		panic(err)
	}
	if err := t.Insert(keyed.Bytes([]byte("Godzilla")), 2); err != nil {
		panic(err)
	}
	fmt.Println(t.Lookup(keyed.Bytes([]byte("Godzilla"))))
	fmt.Println(t.Delete(keyed.Bytes([]byte("Godzilla")), 3), t.Delete(keyed.Bytes([]byte("Godzilla")), 2), t.Len())
	// Output:
	// 2 true
	// false true 0
}
