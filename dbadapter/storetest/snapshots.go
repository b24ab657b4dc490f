package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

func testSnapshots(t *testing.T, h Harness) {
	e := newEnvWith(t, h, manyChanges, Weak(hasher(), 3))
	tw := newTwin(e.hasher)
	type kept struct {
		snapshot dbadapter.Snapshot
		twin     *twin
	}
	var all []kept
	for round := range 20 {
		var writes []write
		for i := range 10 {
			writes = append(writes, put(fmt.Sprint((round+i*i)%25), fmt.Sprint(round), at(round)))
		}
		e.apply(writes...)
		tw.apply(writes)
		all = append(all, kept{e.snapshot(), tw.clone()})
	}
	for i, k := range all {
		if err := k.twin.compare(k.snapshot); err != nil {
			t.Errorf("the snapshot of round %d, read after the last: %v", i, err)
		}
		if i > 0 && k.snapshot.Seq() <= all[i-1].snapshot.Seq() {
			t.Errorf("the snapshot of round %d is as of change %d, the one before as of %d", i, k.snapshot.Seq(), all[i-1].snapshot.Seq())
		}
	}
	// A scan goes on while its namespace is written to.
	s := e.snapshot()
	var got []dbadapter.Record
	for r, err := range s.Scan(context.Background(), nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		e.apply(put(string(r.Key), "new", at(100)), put("0"+string(r.Key), "new", at(100)))
		got = append(got, r.Record)
	}
	if err := same("Scan under writes", got, tw.sorted(nil, nil)); err != nil {
		t.Error(err)
	}
}
