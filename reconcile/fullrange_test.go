package reconcile

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Two contents of one checksum in a range that is too full to be listed stay there, and
// the syncs say so and move everything else; a sync by the method all makes them equal.
func TestRangeTooFullToBeListed(t *testing.T) {
	h := coarse{dbadapter.NewHasher(testSecret)}
	a, b := newSide(t, "a", h), newSide(t, "b", h)
	a.put(record("k", "one", at(0)))
	b.put(record("k", "two", at(time.Second)))
	index := h.Index([]byte("k"))
	open := func(s *side) Replica {
		r, _ := openSpoilt(s, wire.Span{}, func(s *spoilt) {
			s.ranges.Add(index, dbadapter.Sum{Records: maxMarks}) // as if it held so many beside
		})
		return r
	}
	for round := range 3 {
		a.put(record(fmt.Sprint("of a ", round), "", at(0)))
		b.put(record(fmt.Sprint("of b ", round), "", at(0)))
		out := between(t, a, b, open(a), open(b), Options{}, nil)
		if !errors.Is(out.errA, ErrNotVerified) || !errors.Is(out.errB, ErrNotVerified) || out.a.Repair.Left != 1 {
			t.Fatalf("%v, %v, %+v", out.errA, out.errB, out.a.Repair)
		}
		if !strings.Contains(out.errA.Error(), "sync once by the method all") {
			t.Errorf("it says %q", out.errA)
		}
		if na, nb := len(a.dump()), len(b.dump()); na != 3+2*round || nb != na {
			t.Errorf("round %d: %d and %d records", round, na, nb)
		}
	}
	if out := run(t, a, b, Options{Method: wire.MethodAll}, nil); out.errA != nil || out.errB != nil {
		t.Errorf("by the method all: %v, %v", out.errA, out.errB)
	}
	wantEqual(t, a, b)
}
