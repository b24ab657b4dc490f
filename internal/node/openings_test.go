package node

import (
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

func TestOpeningsFollowTheLastSyncs(t *testing.T) {
	var o openings
	if n := o.cells("x"); n != reconcile.FirstCells {
		t.Errorf("%d cells for an unknown peer", n)
	}
	for range remembered {
		o.note("x", 0)
	}
	if n := o.cells("x"); n != reconcile.QuietCells {
		t.Errorf("%d cells after syncs of nothing", n)
	}
	o.note("x", 1000)
	for range remembered - 1 {
		if n := o.cells("x"); n < 1100 || n > 1500 {
			t.Errorf("%d cells soon after 1,000 differences", n)
		}
		o.note("x", 0)
	}
	o.note("x", 0)
	if n := o.cells("x"); n != reconcile.QuietCells {
		t.Errorf("%d cells long after 1,000 differences", n)
	}
	if o.note("x", 1e9); o.cells("x") != reconcile.MaxFirstCells {
		t.Errorf("%d cells after a flood", o.cells("x"))
	}
	if n := o.cells("y"); n != reconcile.FirstCells {
		t.Errorf("%d cells for another peer", n)
	}
}

// A sync of all that found its differences by cells is what the next one opens
// by; a sync that failed, of a prefix, or that sent everything says nothing.
func TestOpeningsAreNoted(t *testing.T) {
	a, b := newMachine(1), newMachine(2)
	sa := a.create("notes", Policy{})
	sb := must(b.join(a, invite(sa, RoleWrite)))
	noted := func() (mine, theirs int) { return len(sb.Sets()[0].openings.of), len(sa.Sets()[0].openings.of) }
	must(put(sa, "k", "v"))
	for what, ask := range map[string]Ask{"of a prefix": {Prefix: []byte("l")}, "of everything": {Method: wire.MethodAll}} {
		if _, _, err := b.sync(sb, a, ask); err != nil {
			t.Errorf("a sync %s: %v", what, err)
		}
		if mine, theirs := noted(); mine+theirs != 0 {
			t.Errorf("a sync %s was noted", what)
		}
	}
	for i := range remembered {
		must(put(sa, fmt.Sprint(i), "v"))
		if r, _, err := b.sync(sb, a, Ask{Method: wire.MethodSketch}); err != nil || r.Cells != reconcile.FirstCells {
			t.Errorf("sync %d opened with %d cells; %v", i, r.Cells, err)
		}
	}
	must(put(sa, "one more", "v"))
	if r, _, err := b.sync(sb, a, Ask{Method: wire.MethodSketch}); err != nil || r.Cells != reconcile.CellsToOpen(1) {
		t.Errorf("after syncs of one difference it opened with %d cells; %v", r.Cells, err)
	}
	if mine, theirs := noted(); mine != 1 || theirs != 1 {
		t.Errorf("noted of %d and %d peers", mine, theirs)
	}
}

// After four syncs of next to nothing a sync of equal sets costs 600 bytes at the
// most; what is written then comes over and is proved, whichever side began. The first sync
// of more ends the quiet.
func TestQuietTime(t *testing.T) {
	a, b := newMachine(1), newMachine(2)
	sa := a.create("notes", Policy{})
	sb := must(b.join(a, invite(sa, RoleWrite)))
	for i := range 100 {
		must(put(sa, fmt.Sprint("k", i), "v"))
	}
	sync := func() reconcile.Report {
		r, _, err := b.sync(sb, a, Ask{})
		if err != nil || !r.Verified {
			t.Fatalf("%+v, %v", r, err)
		}
		return r
	}
	sync()
	for n := range remembered {
		if r := sync(); n > 0 && r.Cells != reconcile.FirstCells {
			t.Errorf("sync %d opens with %d cells", n, r.Cells)
		}
	}
	for n := range 4 {
		for i := range n {
			must(put([]*Namespace{sa, sb}[i%2], fmt.Sprint("k", 10*n+i), "changed"))
		}
		r := sync()
		if r.Differences() != n {
			t.Errorf("%d differences of %d", r.Differences(), n)
		}
		if size := r.WireBytesSent + r.WireBytesReceived; n == 0 && (size > 600 || r.Cells != reconcile.QuietCells) {
			t.Errorf("a sync of equal sets takes %d bytes and %d cells", size, r.Cells)
		}
	}
	if r := sync(); r.Cells != reconcile.CellsToOpen(3) {
		t.Errorf("after three differences a sync opens with %d cells", r.Cells)
	}
}
