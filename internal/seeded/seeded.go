// Package seeded gives a random test its randomness. A test that fails prints its seed, and
// takes it back:
//
//	go test ./bfield/cuckoo -run Twin -seed 4711
package seeded

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the random tests; 0 draws one")

// New is a generator of the seed that -seed gives, or of one of this moment.
func New(t testing.TB) *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("replay with -seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 1))
}
