package bloom_test

import (
	"fmt"

	"github.com/syncd-io/syncd/bfield/bloom"
	"github.com/syncd-io/syncd/bfield/keyed"
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
	here.Insert(keyed.Bytes([]byte("amber")))
	there.Insert(keyed.Bytes([]byte("birch")))
	if err := here.Merge(there); err != nil {
		panic(err)
	}
	fmt.Println(here.Lookup(keyed.Bytes([]byte("amber"))), here.Lookup(keyed.Bytes([]byte("birch"))), here.Lookup(keyed.Bytes([]byte("cedar"))))
	// Output: true true false
}
