package locator_test

import (
	"fmt"

	"github.com/syncd-io/syncd/bfield/locator"
)

func Example() {
	l, err := locator.New(locator.Config{Shards: 16})
	if err != nil {
		fmt.Println(err)
		return
	}
	// Key i is in shard i mod 16; a real key is hashed first.
	err = l.Rebuild(func(yield func(uint64, locator.Shard) bool) error {
		for i := range uint64(1000) {
			if !yield(i, locator.Shard(i%16)) {
				break
			}
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(l.Lookup(35))
	_ = l.Set(35, 9) // it has moved
	fmt.Println(l.Lookup(35))
	l.Remove(36)
	fmt.Println(l.Lookup(36))
	fmt.Println(l.Lookup(2000))
	// Output:
	// 3 likely
	// 9 exact
	// 0 removed
	// 0 nowhere
}
