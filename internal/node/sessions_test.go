package node

import (
	"errors"
	"testing"

	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The same of two nodes with their namespaces: whichever calls, one sync takes
// place. A dry run does not wait, and no other sync waits for it.
func TestCallersYield(t *testing.T) {
	a, b, sa, sb := newPair(RoleWrite)
	hello := someHello(sa)
	dry := *hello
	dry.DryRun = true
	answers := func() (atA, atB error) {
		for _, h := range []*wire.Hello{hello, &dry} {
			for _, side := range []struct {
				of  *machine
				by  ID
				err *error
			}{{a, b.ID, &atA}, {b, a.ID, &atB}} {
				_, done, err := side.of.Answer(side.by, h)
				if err == nil {
					done()
				}
				if h.DryRun && err != nil {
					t.Errorf("a dry run: %v", err)
				}
				if !h.DryRun {
					*side.err = err
				}
			}
		}
		return atA, atB
	}
	if atA, atB := answers(); atA != nil || atB != nil {
		t.Errorf("neither calls: %v, %v", atA, atB)
	}
	quietly := sa.Sets()[0].Call(b.ID, syncing.Ask{DryRun: true})
	quietly2 := sb.Sets()[0].Call(a.ID, syncing.Ask{DryRun: true})
	if atA, atB := answers(); atA != nil || atB != nil {
		t.Errorf("both call for a dry run: %v, %v", atA, atB)
	}
	quietly()
	quietly2()
	doneA, doneB := sa.Sets()[0].Call(b.ID, syncing.Ask{}), sb.Sets()[0].Call(a.ID, syncing.Ask{})
	atA, atB := answers()
	if (atA == nil) == (atB == nil) || !errors.Is(errors.Join(atA, atB), reconcile.ErrBusy) || (atA != nil) != (a.ID < b.ID) {
		t.Errorf("both call: %v, %v", atA, atB)
	}
	doneA()
	doneB()
	if atA, atB := answers(); atA != nil || atB != nil {
		t.Errorf("both are done: %v, %v", atA, atB)
	}
}
