package peer

import (
	"testing"

	"github.com/syncd-io/syncd/reconcile"
)

func TestOpeningsFollowTheLastSyncs(t *testing.T) {
	var o openings
	if n := o.cells("x"); n != reconcile.FirstCells {
		t.Errorf("%d cells for an unknown peer", n)
	}
	for range remembered {
		o.note("x", 0)
	}
	if n := o.cells("x"); n != reconcile.MinFirstCells {
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
	if n := o.cells("x"); n != reconcile.MinFirstCells {
		t.Errorf("%d cells long after 1,000 differences", n)
	}
	if o.note("x", 1e9); o.cells("x") != reconcile.MaxFirstCells {
		t.Errorf("%d cells after a flood", o.cells("x"))
	}
	if n := o.cells("y"); n != reconcile.FirstCells {
		t.Errorf("%d cells for another peer", n)
	}
}
