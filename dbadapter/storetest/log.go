package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// testLog compares the log with what was observed, from each point on.
func testLog(t *testing.T, h Harness) {
	e := newEnvWith(t, h, manyChanges, Weak(hasher(), 5))
	random := rand.New(rand.NewPCG(1, 2))
	held := map[dbadapter.Index]map[string]bool{}
	for i := range 60 {
		var writes []write
		for range 1 + random.IntN(8) {
			writes = append(writes, put(fmt.Sprint(random.IntN(60)), fmt.Sprint(i), at(random.IntN(60))))
		}
		before := len(e.observed)
		outcomes := e.apply(writes...)
		e.checkKeys(e.observed[before:], writes, outcomes, held)
	}
	var big []write
	for i := range 3000 {
		big = append(big, put(fmt.Sprint("big", i), "", at(1)))
	}
	e.apply(big...)
	e.checkLog(0)
	sums := make(map[dbadapter.Index]dbadapter.Checksum)
	for _, c := range e.observed {
		if sums[c.Index] != c.Old {
			t.Fatalf("change %d says the checksum was %d, and it was %d", c.Seq, c.Old, sums[c.Index])
		}
		sums[c.Index] = c.New
	}
	e.reopen()
	e.checkLog(0)
}

// checkKeys compares what changes say of their keys with what was put; held is what each
// index holds.
func (e *env) checkKeys(changes []dbadapter.Change, writes []write, outcomes []dbadapter.Outcome, held map[dbadapter.Index]map[string]bool) {
	e.Helper()
	written := map[dbadapter.Index]map[string]bool{}
	for i, w := range writes {
		if outcomes[i].Result != dbadapter.Applied {
			continue
		}
		for _, of := range []map[dbadapter.Index]map[string]bool{written, held} {
			index := e.hasher.Index(w.Record.Key)
			if of[index] == nil {
				of[index] = map[string]bool{}
			}
			of[index][string(w.Record.Key)] = true
		}
	}
	for _, c := range changes {
		var keys []string
		for _, key := range c.Keys {
			keys = append(keys, string(key))
		}
		want := slices.Sorted(maps.Keys(written[c.Index]))
		if !slices.Equal(keys, want) || c.Shared != (len(held[c.Index]) > len(want)) {
			e.Fatalf("change %d names the keys %q, shared: %v; %q were written to index %d, which holds %d", c.Seq, keys, c.Shared, want, c.Index, len(held[c.Index]))
		}
		delete(written, c.Index)
	}
	if len(written) > 0 {
		e.Fatalf("no change names what was written to the indices %v", slices.Sorted(maps.Keys(written)))
	}
}

// testKeysOfChanges: a change names the keys that a commit has written or removed, each
// once, and says whether others share their index.
func testKeysOfChanges(t *testing.T, h Harness) {
	e := newEnvWith(t, h, manyChanges, Weak(hasher(), 0)) // one index for all
	a, b, c := put("a", "1", at(1)), put("b", "1", at(1)), put("c", "1", at(1))
	for _, test := range []struct {
		name   string
		writes []write
		keys   []string
		shared bool
	}{
		{"the first key", []write{b}, []string{"b"}, false},
		{"two keys, one of them twice", []write{c, put("a", "0", at(0)), a}, []string{"a", "c"}, true},
		{"all that is held", []write{put("c", "2", at(2)), put("a", "2", at(2)), put("b", "2", at(2))}, []string{"a", "b", "c"}, false},
		{"one is removed", []write{take(dbadapter.Collect, put("b", "2", at(2)).Record)}, []string{"b"}, true},
		{"one removed, one put", []write{take(dbadapter.SetAside, put("a", "2", at(2)).Record), put("d", "3", at(3))}, []string{"a", "d"}, true},
		{"one removed and put again", []write{take(dbadapter.Collect, put("d", "3", at(3)).Record), put("d", "4", at(4))}, []string{"d"}, true},
		{"one removed and put back", []write{take(dbadapter.Collect, put("d", "4", at(4)).Record), put("d", "4", at(4))}, nil, true},
		{"one put and removed", []write{put("e", "4", at(4)), take(dbadapter.Collect, put("e", "4", at(4)).Record)}, nil, true},
		{"the last two removed", []write{take(dbadapter.Collect, put("d", "4", at(4)).Record), take(dbadapter.Collect, put("c", "2", at(2)).Record)}, []string{"c", "d"}, false},
	} {
		before := len(e.observed)
		for i, o := range e.apply(test.writes...) {
			if o.Result != dbadapter.Applied {
				t.Fatalf("%s: write %d gives %d", test.name, i, o.Result)
			}
		}
		var keys []string
		for _, key := range e.observed[before].Keys {
			keys = append(keys, string(key))
		}
		if change := e.observed[before]; len(e.observed) != before+1 || !slices.Equal(keys, test.keys) || change.Shared != test.shared {
			t.Errorf("%s: change %+v names the keys %q, shared: %v; want %q, %v", test.name, change, keys, change.Shared, test.keys, test.shared)
		}
	}
	e.checkLog(0)
	e.reopen()
	e.checkLog(0)
}

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
	if e.openNamespace(2); e.namespace.Log() == first {
		t.Error("two namespaces have logs of one id")
	}
	e.reopen()
	if err := e.store.Drop(context.Background(), one); err != nil {
		t.Fatal(err)
	}
	e.namespace.Close()
	if e.openNamespace(1); e.namespace.Log() == first {
		t.Error("a namespace that was made anew has the log of the one that was dropped")
	}
}

// checkLog compares the log after each observed change with what was observed.
// Changes up to trimmed may be gone.
func (e *env) checkLog(trimmed uint64) {
	e.Helper()
	end := uint64(len(e.observed))
	afters := []uint64{end + 5, end, trimmed}
	for after := trimmed; after < end; after += 1 + (end-trimmed)/50 {
		afters = append(afters, after)
	}
	for _, after := range afters {
		next := after + 1
		for c, err := range e.namespace.Changes(context.Background(), after) {
			if err != nil {
				e.Fatalf("the log after %d: %v", after, err)
			}
			if c.Seq != next || next > end {
				e.Fatalf("the log after %d gives change %d, want %d of %d", after, c.Seq, next, end)
			}
			if o := e.observed[c.Seq-1]; !sameChange(c, o) {
				e.Fatalf("the log has %+v, observed was %+v", c, o)
			}
			next++
		}
		if next != max(end, after)+1 {
			e.Fatalf("the log after %d ends with %d, want %d", after, next-1, end)
		}
	}
	for range e.namespace.Changes(context.Background(), trimmed) { // left early
		break
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
			e.checkPositions(limit)
		}
	}
	if e.checkPositions(limit) == 0 {
		t.Errorf("the log of %d changes, of which %d must be kept, has not been trimmed", len(e.observed), limit)
	}
	e.reopen()
	if e.checkPositions(limit) == 0 {
		t.Error("the log has come back")
	}
}

// checkPositions reads the log after each position, and returns the first one
// that it reaches back to.
func (e *env) checkPositions(limit uint64) (first uint64) {
	e.Helper()
	end, reached := uint64(len(e.observed)), false
	for after := range end + 2 {
		next := after + 1
		var err error
		for c, failed := range e.namespace.Changes(context.Background(), after) {
			if err = failed; err != nil {
				break
			}
			if o := e.observed[next-1]; !sameChange(c, o) {
				e.Fatalf("the log after %d has %+v, observed was %+v", after, c, o)
			}
			next++
		}
		switch {
		case errors.Is(err, dbadapter.ErrTrimmed):
			if next != after+1 || reached || after+limit >= end {
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
	return first
}
