package locator

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the random tests; 0 draws one")

// seeded gives a random test its randomness; a test that fails prints its seed, and -seed takes
// it back.
func seeded(t testing.TB) *rand.Rand {
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
