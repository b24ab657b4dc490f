package node

import (
	"testing"
)

// A node that was closed in order knows what waits to be collected, and its first sweep
// after the start comes when something of it may go, not before. After a write, a kill or
// a change of the list of members it reads its records.
func TestOrderlyCloseNotesWhatWaits(t *testing.T) {
	c := newCrew(t, 2)
	m := c.machines[0]
	m.Summaries.Least = -1
	ns := func() *Namespace { return c.ns[0] }
	for _, key := range []string{"a", "b", "c"} {
		must(put(ns(), key, "v"))
	}
	must(commit(ns().Sets()[0].Delete([]byte("b"))))
	reopen := func(inOrder bool) {
		t.Helper()
		c.ns[0] = m.reopen(ns(), inOrder)
	}
	// tends says how many scans of all records a turn of the background takes.
	tends := func() int {
		t.Helper()
		m.scans = 0
		succeeds(t, second(ns().Tend(t.Context())))
		return m.scans
	}
	expect := func(when string, known bool) {
		t.Helper()
		f, swept := ns().Sets()[0].gc.Waiting().Now()
		if swept != known || known && (f.Count != 1 || f.Least == 0) {
			t.Errorf("%s: %+v, known: %t", when, f, swept)
		}
		want := 1
		if known {
			want = 0
		}
		if got := tends(); got != want {
			t.Errorf("%s: all records are read %d times", when, got)
		}
	}
	reopen(false)
	expect("killed before a summary was kept", false)
	reopen(true)
	expect("closed in order", true)
	reopen(true)
	expect("closed in order once more, without a write", true)
	reopen(false)
	expect("killed, without a write", true)
	must(put(ns(), "d", "v"))
	reopen(false)
	expect("killed after a write", false)
	must(commit(ns().Sets()[0].Delete([]byte("d"))))
	reopen(true)
	if f, swept := ns().Sets()[0].gc.Waiting().Now(); !swept || f.Count != 2 {
		t.Errorf("after another deletion: %+v, %t", f, swept)
	}
	succeeds(t, setRole(ns(), c.machines[1].ID, RoleRead))
	reopen(false)
	if _, swept := ns().Sets()[0].gc.Waiting().Now(); swept {
		t.Error("with another list of members, what an earlier sweep has found counts")
	}
}
