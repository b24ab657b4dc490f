package rateless_test

import (
	"fmt"

	"github.com/syncd-io/syncd/iblt/rateless"
)

// A set that is there already is sketched in one call, which ends with the
// error of the sequence that lists it, if there is one.
func ExampleSketch_AddAll() {
	set := map[rateless.Index]rateless.Checksum{}
	for k := range rateless.Index(3) {
		set[k+1] = rateless.Seal(k+1, 7)
	}
	sketch := rateless.NewSketch(rateless.Key{1, 2, 3}, 16)
	err := sketch.AddAll(func(yield func(rateless.Pair, error) bool) {
		for k, v := range set {
			if !yield(rateless.Pair{Index: k, Checksum: v}, nil) {
				return
			}
		}
	})
	fmt.Println(sketch.Prefix(1)[0].Count, "pairs", err) // cell 0 holds them all
	// Output: 3 pairs <nil>
}
