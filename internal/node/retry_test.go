package node

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/reconcile"
)

// A busy peer is asked again for about fifteen seconds in all, first soon and
// then more and more rarely; what is not busy is not tried again.
func TestBusyRetry(t *testing.T) {
	m := newMachine(1)
	busy := fmt.Errorf("no place: %w", reconcile.ErrBusy)
	for range 1000 {
		var (
			retry BusyRetry
			total time.Duration
			tries int
			meant = firstPause
		)
		for wait, again := retry.Again(m.Node, total, busy); again; wait, again = retry.Again(m.Node, total, busy) {
			if wait != BusyPatience-total && wait < meant/2 || wait >= meant*3/2 {
				t.Fatalf("pause %d is %s, meant to be %s", tries, wait, meant)
			}
			meant = meant * 3 / 2
			total += wait
			tries++
		}
		if total != BusyPatience || tries < 10 || tries > 16 {
			t.Fatalf("%d tries in %s", tries, total)
		}
		// Tries that take long leave fewer of them.
		if wait, again := new(BusyRetry).Again(m.Node, BusyPatience-1, busy); !again || wait != 1 {
			t.Fatalf("at the very end: %s, %v", wait, again)
		}
		if _, again := new(BusyRetry).Again(m.Node, BusyPatience, busy); again {
			t.Fatal("asked again after the end")
		}
	}
	for _, err := range []error{nil, ErrDenied, ErrUnreachable, errors.New("busy")} {
		var retry BusyRetry
		if wait, again := retry.Again(m.Node, 0, err); again || wait != 0 {
			t.Errorf("after %v: again in %s", err, wait)
		}
	}
}
