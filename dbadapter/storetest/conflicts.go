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

// after makes a write that knows the record held.
func after(held dbadapter.Record, w write) write {
	w.Record.Replace(&held)
	return w
}

// testConflicts overwrites what the writer had not seen, in each way.
func testConflicts(t *testing.T, h Harness) {
	e := newEnvWith(t, h, manyChanges, Weak(hasher(), 2))
	tw := newTwin(e.hasher)
	lost := func(want int, writes ...write) {
		t.Helper()
		before := e.namespace.KeptCount(dbadapter.KeptConflict)
		e.apply(writes...)
		tw.apply(writes)
		e.check(tw)
		if got := e.namespace.KeptCount(dbadapter.KeptConflict) - before; got != want {
			t.Errorf("%d conflicts more, want %d", got, want)
		}
	}
	lost(0, put("k", "a", by(1, 1)))
	lost(0, put("k", "b", by(1, 2)))                                                  // its own
	lost(1, put("k", "c", by(2, 3)))                                                  // did not know b
	lost(0, after(tw.records["k"], put("k", "d", by(1, 4))))                          // knew c
	lost(0, put("k", "x", by(2, 3)))                                                  // does not win
	lost(0, put("k", "d", by(2, 5)))                                                  // says the same
	lost(1, del("k", by(3, 6)), after(del("k", by(3, 6)).Record, del("k", by(1, 7)))) // the tombstone loses nothing
	lost(1, put("k", "back", by(2, 8)))                                               // undoes a deletion unseen
	lost(0, put("k", "dated", by(0, 9)))
	lost(0, put("k", "over dated", by(1, 10)))
	lost(0, take(dbadapter.Collect, tw.records["k"]), put("k", "over dated", by(1, 10)))
	over := given(by(1, 10), put("k", "placed", by(2, 9)))
	over.Action = dbadapter.Replace
	lost(0, over)
	lost(0, take(dbadapter.Collect, tw.records["k"]))
	lost(0, put("k", "new", by(4, 1)))
	lost(2, put("k", "1", by(5, 2)), put("k", "2", by(6, 3)), put("l", "", by(5, 3)))
	e.reopen()
	e.check(tw)
	for _, c := range []struct{ held, past, expires, want int }{ // of a tombstone, or of a record that expires
		{held: 4, past: 4, want: 0}, {held: 4, past: 3, want: 1}, {held: 4, past: 5, expires: 5, want: 0}, {held: 4, past: 4, expires: 5, want: 1},
	} {
		held := del("past", by(1, c.held))
		if c.expires > 0 {
			held = put("past", "expires", by(1, c.held))
			held.Record.Expires = dbadapter.TimestampAt(at(c.expires).Clock.Time())
		}
		lost(0, held)
		over := put("past", "put", by(2, 9))
		over.Past = at(c.past).Clock
		lost(c.want, over)
		lost(0, take(dbadapter.Collect, tw.records["past"]))
	}
	alive := put("past", "alive", by(1, 1))
	over = put("past", "put", by(2, 2))
	over.Past = at(3).Clock
	lost(1, alive, over)
	entries := tw.kept
	if last := entries[len(entries)-1]; string(last.Record.Value) != "alive" || last.By != by(2, 2) {
		t.Errorf("the last entry is %+v", last)
	}
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
