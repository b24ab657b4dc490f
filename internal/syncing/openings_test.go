package syncing

import (
	"testing"

	"github.com/syncd-io/syncd/reconcile"
)

func TestOpeningsFollowTheLastSyncs(t *testing.T) {
	var o Openings
	if n := o.Cells("x"); n != reconcile.FirstCells {
		t.Errorf("%d cells for an unknown peer", n)
	}
	for range Remembered {
		o.Note("x", 0)
	}
	if n := o.Cells("x"); n != reconcile.QuietCells {
		t.Errorf("%d cells after syncs of nothing", n)
	}
	o.Note("x", 1000)
	for range Remembered - 1 {
		if n := o.Cells("x"); n < 1100 || n > 1500 {
			t.Errorf("%d cells soon after 1,000 differences", n)
		}
		o.Note("x", 0)
	}
	o.Note("x", 0)
	if n := o.Cells("x"); n != reconcile.QuietCells {
		t.Errorf("%d cells long after 1,000 differences", n)
	}
	if o.Note("x", 1e9); o.Cells("x") != reconcile.MaxFirstCells {
		t.Errorf("%d cells after a flood", o.Cells("x"))
	}
	if n := o.Cells("y"); n != reconcile.FirstCells {
		t.Errorf("%d cells for another peer", n)
	}
}
