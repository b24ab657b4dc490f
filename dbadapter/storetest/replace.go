package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// testReplace puts lesser records in place of greater ones, and brings the
// clocks down after them, as a node does whose clock was wrong.
func testReplace(t *testing.T, h Harness) {
	e := newEnvWith(t, h, manyChanges, Weak(hasher(), 1))
	tw := newTwin(e.hasher)
	const ahead, right = 1_000_000, 100
	long := strings.Repeat("l", dbadapter.MaxValue)
	writes := []write{put("small", "v", at(ahead)), put("long", long, at(ahead)), del("deleted", at(ahead)), put("other", "w", at(right-1))}
	e.apply(writes...)
	tw.apply(writes)

	// A replacement names the version that it replaces, and no other.
	if _, err := submit(context.Background(), e.namespace, e.hasher, []write{{Record: put("small", "v", at(right)).Record, Action: dbadapter.Replace}}); err == nil {
		t.Error("a replacement that names no version was taken")
	}
	over := func(key string, w write) write {
		w = given(tw.records[key].Version, w)
		w.Action = dbadapter.Replace
		return w
	}
	elsewhere := over("long", put("long", long, at(right)))
	elsewhere.If = &dbadapter.Version{Clock: 1}
	batch := []write{over("small", put("small", "v", at(right))), elsewhere}
	if _, err := submit(context.Background(), e.namespace, e.hasher, batch); !errors.Is(err, dbadapter.ErrConflict) {
		t.Errorf("a replacement of another version than is held: %v", err)
	}
	tw.apply(batch)
	e.check(tw)
	before, old := e.snapshot(), tw.clone()

	// The first batch, and a crash before the second: the clocks stay.
	first := []write{over("small", put("small", "v", at(right))), over("long", put("long", "short", at(right)))}
	for i, o := range e.apply(first...) {
		if o.Result != dbadapter.Applied || o.Held != first[i].Record.Version {
			t.Errorf("replacement %d: %+v", i, o)
		}
	}
	tw.apply(first)
	e.check(tw)
	if err := old.compare(before); err != nil {
		t.Errorf("a snapshot from before: %v", err)
	}
	e.reopen()
	if latest, ceiling := e.namespace.Latest(), e.namespace.Ceiling(); latest != at(ahead).Clock || ceiling != at(ahead).Clock {
		t.Errorf("reopened between two batches, Latest is %v and Ceiling %v", latest, ceiling)
	}
	second := []write{over("deleted", del("deleted", at(right+1)))}
	e.apply(second...)
	tw.apply(second)

	// The clocks come down, and stay down, a ceiling that was raised with them.
	if err := e.namespace.Raise(context.Background(), at(ahead+1).Clock); err != nil {
		t.Fatal(err)
	}
	for _, to := range []int{right + 1, ahead} {
		if err := e.namespace.Lower(context.Background(), at(to).Clock); err != nil {
			t.Fatal(err)
		}
		tw.lower(at(right + 1).Clock)
		e.check(tw)
	}
	e.checkLog(0)
	e.reopen()
	e.check(tw)
	e.want(put("small", "later", at(right+2)), dbadapter.Applied)
	e.want(put("small", "earlier", at(right+1)), dbadapter.Dominated)
}
