package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// by is a version of a writer.
func by(writer, second int) dbadapter.Version {
	v := at(second)
	v.Writer = dbadapter.WriterID(writer)
	return v
}

// testManyConflicts makes more conflicts than are kept: the oldest go, and what is
// set aside stays.
func testManyConflicts(t *testing.T, h Harness) {
	e := newEnv(t, h)
	tw := newTwin(e.hasher)
	do := func(writes ...write) {
		t.Helper()
		e.apply(writes...)
		tw.apply(writes)
	}
	do(put("aside", "v", by(1, 1)))
	do(take(dbadapter.SetAside, tw.records["aside"]))
	const batches = 5
	for round := range batches + 1 {
		var writes []write
		for i := range dbadapter.MaxBatch * 2 / 3 {
			writes = append(writes, put(fmt.Sprint(i), fmt.Sprint(round), by(1+round, round)))
		}
		do(writes...)
	}
	tw.trim()
	e.reopen()
	e.check(tw)
	seqs := []uint64{tw.kept[1].Seq, tw.kept[dbadapter.MaxConflicts].Seq}
	if err := e.namespace.Forget(t.Context(), seqs...); err != nil {
		t.Fatal(err)
	}
	tw.forget(seqs)
	do(put("0", "last", by(99, 99)))
	tw.trim()
	e.check(tw)
}

// testLargeConflicts lets batches of small records take the place of large ones:
// more than goes in a transaction, and then more than is kept.
func testLargeConflicts(t *testing.T, h Harness) {
	e := newEnv(t, h)
	tw := newTwin(e.hasher)
	const large = 66 // MiB
	var small []write
	for i := range large {
		w := put(fmt.Sprint(i), strings.Repeat(fmt.Sprint(i%10), dbadapter.MaxValue), by(1, 1))
		e.apply(w)
		tw.apply([]write{w})
		small = append(small, put(fmt.Sprint(i), "", by(2, 2)))
	}
	aside := put("aside", strings.Repeat("v", 1<<20), by(1, 1))
	e.apply(aside)
	tw.apply([]write{aside})
	few := append(small[:5:5], take(dbadapter.SetAside, aside.Record))
	e.apply(few...)
	tw.apply(few)
	e.check(tw)
	e.reopen()
	e.apply(small...)
	tw.apply(small)
	tw.trim()
	e.check(tw)
	e.reopen()
	e.check(tw)
}

// trim does what bounds the conflicts.
func (t *twin) trim() {
	number, bytes := 0, 0
	var left []dbadapter.Kept
	for _, k := range slices.Backward(t.kept) {
		if k.Why == dbadapter.KeptConflict {
			number, bytes = number+1, bytes+len(k.Record.Key)+len(k.Record.Value)
			if number > dbadapter.MaxConflicts || bytes > dbadapter.MaxConflictBytes {
				continue
			}
		}
		left = append(left, k)
	}
	slices.Reverse(left)
	t.kept = left
}
