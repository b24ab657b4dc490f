package reconcile

import (
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/storetest"
)

// Records of one index pass though they are more than may wait for one another,
// whichever side holds them, and whether the other holds an older one or nothing there.
func TestLargeBucket(t *testing.T) {
	const large = 7
	hasher := storetest.Weak(testKeys.Hasher, 2)
	for _, caller := range []string{"the side that holds them", "the other side"} {
		for _, older := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s calls, an older record: %v", caller, older), func(t *testing.T) {
				full, other := newSide(t, "full", hasher), newSide(t, "other", hasher)
				held, elsewhere := 0, false
				for n := 0; held < large || !elsewhere; n++ {
					r := record(fmt.Sprint("key ", n), "", at(time.Hour))
					switch index := hasher.Index(r.Key); {
					case index == 1 && held < large:
						r.Value = make([]byte, dbadapter.MaxValue)
						full.put(r)
						if held++; older && held == 1 {
							other.put(record(string(r.Key), "old", at(0)))
						}
					case index != 1 && !elsewhere:
						elsewhere = true
						full.put(r)
						other.put(r)
					}
				}
				a, b := full, other
				if caller == "the other side" {
					a, b = other, full
				}
				out := run(t, a, b, Options{}, nil)
				if out.errA != nil || out.errB != nil || !out.a.Verified || !out.b.Verified {
					t.Errorf("%v, %v", out.errA, out.errB)
				}
				wantEqual(t, a, b)
			})
		}
	}
}
