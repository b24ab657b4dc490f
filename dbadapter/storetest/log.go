package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// testLogID: the id of a log stays for as long as the log does.
func testLogID(t *testing.T, h Harness) {
	e := newEnv(t, h)
	first := e.namespace.Log()
	if first == 0 {
		t.Error("the log has no id")
	}
	e.apply(put("k", "v", at(1)))
	if id := e.namespace.Log(); id != first {
		t.Errorf("the id of the log was %s, and a write has made it %s", first, id)
	}
	e.reopen()
	if id := e.namespace.Log(); id != first {
		t.Errorf("the id of the log was %s, and an opening has made it %s", first, id)
	}
	one := e.id
	if e.begin(2); e.namespace.Log() == first {
		t.Error("two namespaces have logs of one id")
	}
	e.reopen()
	if err := e.store.Drop(context.Background(), one); err != nil {
		t.Fatal(err)
	}
	e.namespace.Close()
	if e.begin(1); e.namespace.Log() == first {
		t.Error("a namespace that was made anew has the log of the one that was dropped")
	}
}

func sameChange(a, b dbadapter.Change) bool {
	return a.Seq == b.Seq && a.Index == b.Index && a.Old == b.Old && a.New == b.New &&
		slices.EqualFunc(a.Keys, b.Keys, bytes.Equal) && a.Shared == b.Shared && a.Delta == b.Delta && a.Records == b.Records
}

// testTrim reads the log after every position, time and again while it is being
// trimmed. It gives all that followed or, where that is trimmed, ErrTrimmed and nothing
// else.
func testTrim(t *testing.T, h Harness) {
	const limit = 100
	e := newEnvWith(t, h, limit, hasher())
	for i := range 150 {
		e.apply(put(fmt.Sprint("a", i), "", at(i)), put(fmt.Sprint("b", i), "", at(i)), put(fmt.Sprint("c", i), "", at(i)), put(fmt.Sprint("d", i), "", at(i)))
		if i%29 == 0 {
			e.checkLog(limit)
		}
	}
	if e.checkLog(limit) == 0 {
		t.Errorf("the log of %d changes, of which %d must be kept, has not been trimmed", len(e.observed), limit)
	}
	e.reopen()
	if e.checkLog(limit) == 0 {
		t.Error("the log has come back")
	}
}

// checkLog reads the log after many positions, compares it with what was observed, and
// returns the first position that it reaches back to. It keeps so many changes, at least.
func (e *env) checkLog(least uint64) (first uint64) {
	e.Helper()
	end, reached := uint64(len(e.observed)), false
	for after := uint64(0); after < end+5; after += 1 + end/100 {
		next := after + 1
		var err error
		for c, failed := range e.namespace.Changes(context.Background(), after) {
			if err = failed; err != nil {
				break
			}
			if next > end || !sameChange(c, e.observed[next-1]) {
				e.Fatalf("the log after %d gives %+v in the place of change %d of %d", after, c, next, end)
			}
			next++
		}
		switch {
		case errors.Is(err, dbadapter.ErrTrimmed):
			if next != after+1 || reached || after+least >= end {
				e.Fatalf("the log of %d changes, read after %d, gives ErrTrimmed after %d changes; it reaches back to %d: %v", end, after, next-after-1, first, reached)
			}
		case err != nil:
			e.Fatalf("the log after %d: %v", after, err)
		case next != max(end, after)+1:
			e.Fatalf("the log after %d ends with %d, want %d", after, next-1, end)
		case !reached:
			first, reached = after, true
		}
	}
	for range e.namespace.Changes(context.Background(), first) { // left early
		break
	}
	return first
}
