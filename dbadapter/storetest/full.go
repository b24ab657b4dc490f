package storetest

import (
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// testFull fills the bucket of an index. One more key is declined, alone, but for a
// tombstone. There is room again once a record is removed or deleted.
func testFull(t *testing.T, h Harness) {
	e := newEnvWith(t, h, manyChanges, Weak(hasher(), 0))
	apply := func(what string, result dbadapter.Result, writes ...write) {
		t.Helper()
		got := e.apply(writes...)
		if last := got[len(got)-1].Result; last != result {
			t.Errorf("%s: the last write has the result %d, not %d", what, last, result)
		}
		e.check()
	}
	for i := range dbadapter.MaxBucket - 1 {
		apply("a key", dbadapter.Applied, put(fmt.Sprint("k", i), "v", at(1)))
	}
	apply("the last and one more in one batch", dbadapter.Full, put("last", "v", at(1)), put("more", "v", at(1)))
	apply("one more", dbadapter.Full, put("more", "v", at(2)))
	apply("one that is there", dbadapter.Applied, put("last", "w", at(2)))
	gone := put("last", "w", at(2))
	gone.Action = dbadapter.Collect
	must := put("more", "v", at(2))
	must.Must = true
	for result, stopping := range map[dbadapter.Result]write{dbadapter.Full: must, dbadapter.Dominated: {Record: put("last", "w", at(1)).Record, Must: true}} {
		got := e.apply(put("k0", "w", at(2)), stopping, put("more", "v", at(1)), gone)
		if got[1].Result != result || got[0].Result != dbadapter.Skipped {
			t.Errorf("a batch with a write that must be done gives %+v", got)
		}
		e.check()
	}
	apply("a removal, and one more", dbadapter.Applied, gone, put("more", "v", at(3)))

	apply("a tombstone", dbadapter.Applied, del("grave", at(1)))
	apply("a record in its place", dbadapter.Full, put("grave", "v", at(2)))
	apply("a tombstone in its place", dbadapter.Applied, del("grave", at(3)))
	apply("a tombstone for a record, and the record", dbadapter.Applied, del("k1", at(4)), put("grave", "v", at(5)))
	var graves []write
	for i := dbadapter.MaxBucket + 1; i < dbadapter.MaxBucketKeys; i++ {
		graves = append(graves, del(fmt.Sprint("grave", i), at(1)))
	}
	apply("as many as there may be", dbadapter.Applied, graves...)
	apply("one too many", dbadapter.Full, del("one more", at(6)))
	apply("a new record while there are fewer", dbadapter.Full, del("k2", at(7)), put("one more", "v", at(7)))
}
