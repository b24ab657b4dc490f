package reconcile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// However records of all sizes are mixed, no frame is larger than the peer
// takes. Each key is written by one side, or by both at another time, so that
// every way on which records travel is one on which they are batched.
func TestEveryFrameIsTaken(t *testing.T) {
	large := strings.Repeat("x", dbadapter.MaxValue)
	for name, sizes := range map[string][]int{
		"many small before a large":  append(repeated(wire.BatchBytes/1000-10, 1000), dbadapter.MaxValue),
		"halves of a batch":          repeated(5, wire.BatchBytes/2+1),
		"just below and the largest": {wire.BatchBytes - 100, dbadapter.MaxValue, wire.BatchBytes - 100, dbadapter.MaxValue},
		"the largest only":           repeated(3, dbadapter.MaxValue),
	} {
		for _, o := range []Options{{}, {Method: wire.MethodAll}} {
			for _, both := range []bool{false, true} {
				for _, giver := range []int{0, 1} {
					sides := [2]*side{newSide(t, "a", nil), newSide(t, "b", nil)}
					for i := range 3 {
						r := record(fmt.Sprint("common ", i), "", at(0))
						sides[0].put(r)
						sides[1].put(r)
					}
					for i, size := range sizes {
						key := fmt.Sprintf("%03d", i)
						sides[giver].put(record(key, large[:size], at(1e9*60)))
						if both {
							sides[1-giver].put(record(key, "", at(0)))
						}
					}
					out := run(t, sides[0], sides[1], o, nil) // which reads each frame as a peer does
					if out.errA != nil || out.errB != nil || !out.a.Verified || !out.b.Verified {
						t.Errorf("%s: %v, %v", name, out.errA, out.errB)
					}
					wantEqual(t, sides[0], sides[1])
				}
			}
		}
	}
}

func repeated(n, size int) []int {
	sizes := make([]int, n)
	for i := range sizes {
		sizes[i] = size
	}
	return sizes
}
