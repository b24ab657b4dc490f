package syncing

import (
	"errors"
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/reconcile"
)

// What is denied is left out, what fails alone keeps no other part out, and what would fail for
// each part ends the sync.
func TestAll(t *testing.T) {
	failed := errors.New("it fails")
	for name, c := range map[string]struct {
		says                   []error
		asked, synced, denied  int
		verified, unsuccessful bool
	}{
		"all are equal":      {[]error{nil, nil, nil}, 3, 3, 0, true, false},
		"one is denied":      {[]error{nil, reconcile.ErrDenied, nil}, 3, 2, 1, true, false},
		"all are denied":     {[]error{reconcile.ErrDenied, reconcile.ErrDenied}, 2, 0, 2, false, false},
		"one fails":          {[]error{failed, nil}, 2, 2, 0, false, true},
		"the peer is away":   {[]error{nil, reconcile.ErrUnreachable, nil}, 2, 2, 0, false, true},
		"the peer is paused": {[]error{fmt.Errorf("here: %w", reconcile.ErrPaused), nil}, 1, 1, 0, false, true},
	} {
		asked, told := 0, 0
		sum, synced, denied, err := All(t.Context(), c.says, func(r reconcile.Report) { told = r.Applied }, func(says error, progress func(reconcile.Report)) (reconcile.Report, error) {
			asked++
			r := reconcile.Report{Applied: 1, Verified: says == nil}
			if progress(r); told != r.Applied+asked-1 && c.denied == 0 {
				t.Errorf("%s: progress says %d at part %d", name, told, asked)
			}
			return r, says
		})
		if asked != c.asked || synced != c.synced || denied != c.denied || sum.Applied != synced || sum.Verified != c.verified || (err != nil) != c.unsuccessful {
			t.Errorf("%s: asked %d, synced %d, denied %d, %+v, %v", name, asked, synced, denied, sum, err)
		}
	}
}
