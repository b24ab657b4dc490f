package iblt_test

import (
	"fmt"

	"github.com/syncd-io/syncd/iblt"
)

// A set that is there already is sketched in one call, which ends with the
// error of the sequence that lists it, if there is one.
func ExampleSketch_AddAll() {
	set := map[iblt.Index]iblt.Checksum{1: 11, 2: 22, 3: 33}
	sketch := iblt.NewSketch(iblt.Key{1, 2, 3}, 16)
	err := sketch.AddAll(func(yield func(iblt.Pair, error) bool) {
		for k, v := range set {
			if !yield(iblt.Pair{Index: k, Checksum: v}, nil) {
				return
			}
		}
	})
	fmt.Println(sketch.Prefix(1)[0].Count, "pairs", err) // cell 0 holds them all
	// Output: 3 pairs <nil>
}
