package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// Entries that are remembered are bounded, and give way to others once their time is over.
func TestDanglingIsBounded(t *testing.T) {
	var d dangling
	v := dbadapter.Version{Clock: 1}
	for i := range danglingMost + 10 {
		d.since(fmt.Append(nil, i), v, time.Duration(i))
	}
	if len(d.of) != danglingMost {
		t.Errorf("%d are remembered", len(d.of))
	}
	if got := d.since([]byte("5"), v, time.Minute); got != 5 {
		t.Errorf("since %d", got)
	}
	if got := d.since([]byte("5"), dbadapter.Version{Clock: 2}, time.Minute); got != time.Minute {
		t.Errorf("another entry: since %d", got)
	}
	later := 2 * danglingFor
	if got := d.since([]byte("new"), v, later); got != later || len(d.of) != 1 {
		t.Errorf("since %v, and %d are remembered", got, len(d.of))
	}
	if d.came([]byte("new")); len(d.of) != 0 {
		t.Errorf("%d are remembered, whose record has come", len(d.of))
	}
}

// Of what shards hold of a key a record counts more than a tombstone, and a later one more than an earlier.
func TestRather(t *testing.T) {
	rec := func(clock dbadapter.Timestamp, deleted bool) *dbadapter.Record {
		return &dbadapter.Record{Key: []byte("k"), Deleted: deleted, Version: dbadapter.Version{Clock: clock, Writer: 1}}
	}
	order := []*dbadapter.Record{nil, rec(8, true), rec(9, true), rec(1, false), rec(2, false)}
	for i, a := range order {
		for j, b := range order {
			if got := rather(a, b); got != (i > j) {
				t.Errorf("%v rather than %v: %t", a, b, got)
			}
		}
	}
}
