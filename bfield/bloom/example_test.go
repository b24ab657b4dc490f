package bloom_test

import (
	"fmt"

	"github.com/syncd-io/syncd/bfield/bloom"
)

// A set that is on two machines: each makes a filter of its keys, and their merge is the
// filter of all.
func Example() {
	config := bloom.Config{Keys: 1000, FalsePositive: 0.01}
	here, err := bloom.New(config)
	if err != nil {
		panic(err)
	}
	there, err := bloom.New(config)
	if err != nil {
		panic(err)
	}
	here.Insert([]byte("amber"))
	there.Insert([]byte("birch"))
	if err := here.Merge(there); err != nil {
		panic(err)
	}
	fmt.Println(here.Lookup([]byte("amber")), here.Lookup([]byte("birch")), here.Lookup([]byte("cedar")))
	// Output: true true false
}
