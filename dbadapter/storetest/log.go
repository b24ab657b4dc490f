package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// testLog compares the log with what was observed, from each point on.
func testLog(t *testing.T, h Harness) {
	e := newEnvWith(t, h, manyChanges, Weak(hasher(), 5))
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		var writes []write
		for range 1 + random.IntN(8) {
			writes = append(writes, put(fmt.Sprint(random.IntN(60)), fmt.Sprint(i), at(random.IntN(60))))
		}
		e.apply(writes...)
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
		bytes.Equal(a.Key, b.Key) && a.Delta == b.Delta && a.Records == b.Records
}

// testTrim reads the log after every position, time and again while it is being
// trimmed: it gives all that followed or, where that is trimmed, ErrTrimmed and
// nothing else.
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
