package storetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

func isNotFound(err error) bool { return errors.Is(err, dbadapter.ErrNotFound) }

func testOrder(t *testing.T, h Harness) {
	e := newEnv(t, h)
	v := at(10)
	e.want(put("k", "first", v), dbadapter.Applied)
	e.want(put("k", "first", v), dbadapter.Same)
	e.want(put("k", "older", at(9)), dbadapter.Dominated)
	if got := e.value("k"); got != `"first"` {
		t.Fatalf("after an older write: %s", got)
	}
	// Clock, then writer, then incarnation.
	for _, next := range []dbadapter.Version{
		{Clock: v.Clock, Writer: 1, Incarnation: 2},
		{Clock: v.Clock, Writer: 2, Incarnation: 0},
		{Clock: v.Clock + 1, Writer: 0, Incarnation: 0},
	} {
		e.want(put("k", next.String(), next), dbadapter.Applied)
		if out := e.apply(put("k", "x", v))[0]; out.Result != dbadapter.Dominated || out.Held != next {
			t.Errorf("a dominated write gives %+v, want it to name %v", out, next)
		}
	}
	if got, want := e.namespace.Latest(), v.Clock+1; got != want {
		t.Errorf("Latest is %v, want %v", got, want)
	}
}

func testTies(t *testing.T, h Harness) {
	e := newEnv(t, h)
	low, high := "a", "b"
	if a, b := sha256.Sum256([]byte("\x00a")), sha256.Sum256([]byte("\x00b")); string(a[:]) > string(b[:]) {
		low, high = high, low
	}
	e.want(put("k", low, at(1)), dbadapter.Applied)
	e.want(put("k", high, at(1)), dbadapter.Applied)
	e.want(put("k", low, at(1)), dbadapter.Dominated)
	e.want(put("k", high, at(1)), dbadapter.Same)
	if got, want := e.value("k"), `"`+high+`"`; got != want {
		t.Errorf("the tie is won by %s, want %s", got, want)
	}
}

func testTombstones(t *testing.T, h Harness) {
	e := newEnv(t, h)
	e.want(put("k", "v", at(1)), dbadapter.Applied)
	e.want(del("k", at(2)), dbadapter.Applied)
	e.want(del("k", at(2)), dbadapter.Same)
	e.want(put("k", "v", at(1)), dbadapter.Dominated)
	if got := e.value("k"); got != "(deleted)" {
		t.Errorf("a deleted key holds %s", got)
	}
	// A tombstone is a record: it stands in the sketch.
	s := e.snapshot()
	sums := make([]dbadapter.Checksum, 1)
	if err := s.Lookup([]dbadapter.Index{e.hasher.Index([]byte("k"))}, sums); err != nil || sums[0] == 0 {
		t.Errorf("the checksum of a tombstone is %d, %v", sums[0], err)
	}
	// An empty value is no tombstone.
	e.want(put("k", "", at(3)), dbadapter.Applied)
	if got := e.value("k"); got != `""` {
		t.Errorf("an empty value reads as %s", got)
	}
	e.want(del("never", at(4)), dbadapter.Applied)
	if got := e.value("never"); got != "(deleted)" {
		t.Errorf("a tombstone of a key that never was reads as %s", got)
	}
}

func testConditions(t *testing.T, h Harness) {
	e := newEnv(t, h)
	refuse := func(w write, held dbadapter.Version) {
		t.Helper()
		outcomes, err := submit(context.Background(), e.namespace, e.hasher, []write{w})
		if !errors.Is(err, dbadapter.ErrConflict) || len(outcomes) != 1 || outcomes[0].Result != dbadapter.Conflict || outcomes[0].Held != held {
			t.Errorf("a failing condition gives %+v, %v; want Conflict and %v", outcomes, err, held)
		}
	}
	absent := dbadapter.Version{}
	refuse(given(at(1), put("k", "v", at(2))), absent)
	e.want(given(absent, put("k", "v", at(2))), dbadapter.Applied)
	refuse(given(absent, put("k", "v", at(3))), at(2))
	refuse(given(at(1), put("k", "v", at(3))), at(2))
	e.want(given(at(2), put("k", "v", at(3))), dbadapter.Applied)
	e.want(given(at(3), put("k", "old", at(1))), dbadapter.Dominated)
	e.want(given(at(3), del("k", at(4))), dbadapter.Applied)
	refuse(given(absent, put("k", "v", at(5))), at(4)) // a tombstone is held
}

func testTwice(t *testing.T, h Harness) {
	e := newEnv(t, h)
	outcomes := e.apply(
		put("k", "2", at(2)),
		put("k", "1", at(1)),
		put("k", "3", at(3)),
		given(at(3), put("k", "4", at(4))),
	)
	want := []dbadapter.Result{dbadapter.Applied, dbadapter.Dominated, dbadapter.Applied, dbadapter.Applied}
	for i, o := range outcomes {
		if o.Result != want[i] || o.Held != at(4) {
			t.Errorf("write %d: %+v, want result %d and the version held after the call", i, o, want[i])
		}
	}
	if len(e.observed) != 1 || e.records != 1 {
		t.Errorf("one commit to one index makes %d changes and %d records", len(e.observed), e.records)
	}
	e.check(twinOf(e, "k", "4", at(4)))
}

func testAtomic(t *testing.T, h Harness) {
	e := newEnv(t, h)
	e.apply(put("a", "1", at(1)), put("b", "1", at(1)))
	outcomes, err := submit(context.Background(), e.namespace, e.hasher, []write{
		put("a", "2", at(2)),
		put("new", "2", at(2)),
		given(at(7), put("b", "2", at(2))),
		given(at(2), put("a", "3", at(3))), // holds within the batch
		given(at(8), put("c", "2", at(2))),
	})
	if !errors.Is(err, dbadapter.ErrConflict) {
		t.Fatalf("error %v, want ErrConflict", err)
	}
	want := []dbadapter.Outcome{
		{Result: dbadapter.Skipped, Held: at(1)},
		{Result: dbadapter.Skipped},
		{Result: dbadapter.Conflict, Held: at(1)},
		{Result: dbadapter.Skipped, Held: at(1)},
		{Result: dbadapter.Conflict},
	}
	for i := range want {
		if outcomes[i] != want[i] {
			t.Errorf("outcome %d is %+v, want %+v", i, outcomes[i], want[i])
		}
	}
	tw := newTwin(e.hasher)
	tw.apply([]write{put("a", "1", at(1)), put("b", "1", at(1))})
	e.check(tw)
	if len(e.observed) != 2 {
		t.Errorf("a failed batch was observed: %v", e.observed[2:])
	}
	if got, want := e.namespace.Latest(), at(1).Clock; got != want {
		t.Errorf("Latest is %v after a failed batch, want %v", got, want)
	}
}

func twinOf(e *env, key, value string, v dbadapter.Version) *twin {
	tw := newTwin(e.hasher)
	tw.apply([]write{put(key, value, v)})
	return tw
}
