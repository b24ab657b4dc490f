package storetest_test

import (
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/storetest"
)

// A weak hasher brings several keys under one index, which is rare otherwise.
func ExampleWeak() {
	hasher := storetest.Weak(dbadapter.NewHasher(dbadapter.Secret{1}), 1)
	indices := map[dbadapter.Index]bool{}
	for i := range 100 {
		indices[hasher.Index(fmt.Append(nil, "key ", i))] = true
	}
	fmt.Println("100 keys have", len(indices), "indices")
	// Output: 100 keys have 2 indices
}
