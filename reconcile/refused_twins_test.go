package reconcile

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/storetest"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Two records of one index and one checksum are both declined: the sync goes on, names
// both, and brings others of the same pair. What was refused is not taken for one of
// those, and is not sent again.
func TestRefusedRecordsOfOnePair(t *testing.T) {
	h := coarse{storetest.Weak(dbadapter.NewHasher(testSecret), 0)}
	a, b := newSide(t, "a", h), newSide(t, "b", h)
	a.refuseBad(wire.ReasonSignature)
	holds := func(key string) bool {
		for _, r := range a.dump() {
			if string(r.Key) == key {
				return true
			}
		}
		return false
	}
	dead := record("bad two", "", at(time.Second))
	dead.Deleted = true
	a.put(record("common", "", at(0)))
	b.put(record("common", "", at(0)), record("bad one", "x", at(4*time.Second)), dead, record("good", "x", at(2*time.Second)))
	for i := range 8 {
		b.put(record(fmt.Sprint("a good ", i), "x", at(2*time.Second)))
	}
	out := synced(t, a, b, Options{}, nil)
	if out.b.DeclinedThere[wire.ReasonSignature] != 2 || out.a.DeclinedHere[wire.ReasonSignature] != 2 || !holds("good") {
		t.Errorf("%+v", out.b)
	}
	b.put(record("later", "x", at(3*time.Second)))
	if out = run(t, a, b, Options{}, nil); out.errA != nil || out.errB != nil || !holds("later") || out.b.DeclinedThere[wire.ReasonSignature] != 2 || out.b.Sent != 11 {
		t.Fatal(out.errA, out.errB, out.a, out.b)
	}
}

// Of several records that live, of one index and one checksum, a side declines two for its
// floor: the other knows which, in this sync and in the next one.
func TestTwinsDeclinedForTheFloor(t *testing.T) {
	h := coarse{storetest.Weak(dbadapter.NewHasher(testSecret), 0)}
	a, b := newSide(t, "a", h), newSide(t, "b", h)
	a.refuseBad(wire.ReasonFloor)
	a.put(record("common", "", at(0)))
	b.put(record("common", "", at(0)), record("bad one", "x", at(time.Second)), record("a good one", "x", at(time.Second)), record("bad two", "x", at(time.Second)))
	for n := range 2 {
		out := synced(t, a, b, Options{}, nil)
		var keys []string
		for _, d := range out.b.DeclinedForFloor {
			keys = append(keys, string(d.Key))
		}
		if slices.Sort(keys); !slices.Equal(keys, []string{"bad one", "bad two"}) || out.b.Sent != 4-2*n {
			t.Errorf("sync %d: %d are sent, and %q declined", n, out.b.Sent, keys)
		}
	}
}
