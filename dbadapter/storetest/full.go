package storetest

import (
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// testFull fills the bucket of an index: one more key is declined, alone, and there is
// room again once a record is removed.
func testFull(t *testing.T, h Harness) {
	e := newEnvWith(t, h, manyChanges, Weak(hasher(), 0))
	tw := newTwin(e.hasher)
	apply := func(what string, result dbadapter.Result, writes ...write) {
		t.Helper()
		want, _ := tw.apply(writes)
		got := e.apply(writes...)
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: write %d is %+v, not %+v", what, i, got[i], want[i])
			}
		}
		if last := got[len(got)-1].Result; last != result {
			t.Errorf("%s: the last write has the result %d, not %d", what, last, result)
		}
		e.checkSet(tw)
	}
	for i := range dbadapter.MaxBucket - 1 {
		apply("a key", dbadapter.Applied, put(fmt.Sprint("k", i), "v", at(1)))
	}
	apply("the last and one more in one batch", dbadapter.Full, put("last", "v", at(1)), put("more", "v", at(1)))
	apply("one more", dbadapter.Full, put("more", "v", at(2)))
	apply("one that is there", dbadapter.Applied, put("last", "w", at(2)))
	gone := put("last", "w", at(2))
	gone.Action = dbadapter.Collect
	apply("a removal, and one more", dbadapter.Applied, gone, put("more", "v", at(3)))
}
