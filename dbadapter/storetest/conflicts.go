package storetest

import (
	"fmt"
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
	aside := put("aside", "v", by(1, 1))
	e.apply(aside)
	e.apply(take(dbadapter.SetAside, aside.Record))
	const batches = 5
	for round := range batches + 1 {
		var writes []write
		for i := range dbadapter.MaxBatch * 2 / 3 {
			writes = append(writes, put(fmt.Sprint(i), fmt.Sprint(round), by(1+round, round)))
		}
		e.apply(writes...)
	}
	e.reopen()
	e.check()
	seqs := []uint64{e.twin.kept[1].Seq, e.twin.kept[dbadapter.MaxConflicts].Seq}
	if err := e.namespace.Forget(t.Context(), seqs...); err != nil {
		t.Fatal(err)
	}
	e.twin.forget(seqs)
	e.apply(put("0", "last", by(99, 99)))
	e.check()
}

// testLargeConflicts lets batches of small records take the place of large ones:
// more than goes in a transaction, and then more than is kept.
func testLargeConflicts(t *testing.T, h Harness) {
	e := newEnv(t, h)
	const large = 66 // MiB
	var small []write
	for i := range large {
		e.apply(put(fmt.Sprint(i), strings.Repeat(fmt.Sprint(i%10), dbadapter.MaxValue), by(1, 1)))
		small = append(small, put(fmt.Sprint(i), "", by(2, 2)))
	}
	aside := put("aside", strings.Repeat("v", 1<<20), by(1, 1))
	e.apply(aside)
	e.apply(append(small[:5:5], take(dbadapter.SetAside, aside.Record))...)
	e.check()
	e.reopen()
	e.apply(small...)
	e.check()
	e.reopen()
	e.check()
}
