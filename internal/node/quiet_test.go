package node

import (
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A sync of all that found its differences by cells is what the next one opens
// by; a sync that failed, of a prefix, or that sent everything says nothing.
func TestOpeningsAreNoted(t *testing.T) {
	a, b, sa, sb := newPair(RoleWrite)
	for what, ask := range map[string]syncing.Ask{"of a prefix": {Prefix: []byte("l")}, "of everything": {Method: wire.MethodAll}} {
		for i := range syncing.Remembered { // so often that the next one would open with other cells
			must(put(sa, fmt.Sprint(what, i), "v"))
			if _, _, err := b.sync(sb, a, ask); err != nil {
				t.Errorf("a sync %s: %v", what, err)
			}
		}
	}
	for range syncing.Remembered {
		c := must(sb.Sets()[0].Initiate(t.Context(), a.ID, syncing.Ask{}, nil))
		c.Session.Next()
		_, _ = c.End(reconcile.ErrUnreachable)
	}
	for i := range syncing.Remembered {
		must(put(sa, fmt.Sprint(i), "v"))
		if r, _, err := b.sync(sb, a, syncing.Ask{Method: wire.MethodSketch}); err != nil || r.Cells != reconcile.FirstCells {
			t.Errorf("sync %d opened with %d cells; %v", i, r.Cells, err)
		}
	}
	must(put(sa, "one more", "v"))
	if r, _, err := b.sync(sb, a, syncing.Ask{Method: wire.MethodSketch}); err != nil || r.Cells != reconcile.CellsToOpen(1) {
		t.Errorf("after syncs of one difference it opened with %d cells; %v", r.Cells, err)
	}
	if n := sa.Sets()[0].openings.Cells(b.ID); n != reconcile.CellsToOpen(1) {
		t.Errorf("the other side would open with %d cells", n)
	}
}

// After four syncs of next to nothing a sync of equal sets costs 600 bytes at the
// most; what is written then comes over and is proved, whichever side began. The first sync
// of more ends the quiet.
func TestQuietTime(t *testing.T) {
	a, b, sa, sb := newPair(RoleWrite)
	for i := range 100 {
		must(put(sa, fmt.Sprint("k", i), "v"))
	}
	sync := func() reconcile.Report {
		r, _, err := b.sync(sb, a, syncing.Ask{})
		if err != nil || !r.Verified {
			t.Fatalf("%+v, %v", r, err)
		}
		return r
	}
	sync()
	for n := range syncing.Remembered {
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
