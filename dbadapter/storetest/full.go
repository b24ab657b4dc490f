package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// testFull fills the bucket of an index. One more key is declined, alone, but for a
// tombstone. There is room again once a record is removed or deleted.
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
	must := put("more", "v", at(2))
	must.Must = true
	for result, stopping := range map[dbadapter.Result]write{dbadapter.Full: must, dbadapter.Dominated: {Record: put("last", "w", at(1)).Record, Must: true}} {
		batch := []write{put("k0", "w", at(2)), stopping, put("more", "v", at(1)), gone}
		want, _ := tw.apply(batch)
		got, err := submit(t.Context(), e.namespace, e.hasher, batch)
		if !errors.Is(err, stoppedBy(result)) || !slices.Equal(got, want) || got[1].Result != result || got[0].Result != dbadapter.Skipped {
			t.Errorf("a batch with a write that must be done gives %+v, %v", got, err)
		}
		e.checkSet(tw)
	}
	apply("a removal, and one more", dbadapter.Applied, gone, put("more", "v", at(3)))

	grave := func(key string, v dbadapter.Version) write {
		w := put(key, "", v)
		w.Record.Deleted, w.Record.Value = true, nil
		return w
	}
	apply("a tombstone", dbadapter.Applied, grave("grave", at(1)))
	apply("a record in its place", dbadapter.Full, put("grave", "v", at(2)))
	apply("a tombstone in its place", dbadapter.Applied, grave("grave", at(3)))
	apply("a tombstone for a record, and the record", dbadapter.Applied, grave("k1", at(4)), put("grave", "v", at(5)))
	var graves []write
	for i := dbadapter.MaxBucket + 1; i < dbadapter.MaxBucketKeys; i++ {
		graves = append(graves, grave(fmt.Sprint("grave", i), at(1)))
	}
	apply("as many as there may be", dbadapter.Applied, graves...)
	apply("one too many", dbadapter.Full, grave("one more", at(6)))
	apply("a new record while there are fewer", dbadapter.Full, grave("k2", at(7)), put("one more", "v", at(7)))
}

// full reports whether the index of a record has no room for it.
func (t *twin) full(r dbadapter.Record) bool {
	if t.keys[t.hasher.Index(r.Key)] < dbadapter.MaxBucket {
		return false
	}
	others, alive := 0, 0
	for _, o := range t.records {
		if t.hasher.Index(o.Key) == t.hasher.Index(r.Key) && string(o.Key) != string(r.Key) {
			if others++; !o.Deleted {
				alive++
			}
		}
	}
	held, ok := t.records[string(r.Key)]
	return !ok && others >= dbadapter.MaxBucketKeys || !r.Deleted && (!ok || held.Deleted) && alive >= dbadapter.MaxBucket
}
