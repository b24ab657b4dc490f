package syncing

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/syncd-io/syncd/reconcile"
)

// spread gives pauses from half of the mean to one and a half.
func spread(mean time.Duration) time.Duration { return mean/2 + rand.N(max(1, mean)) }

// A busy peer is asked again for about fifteen seconds in all, first soon and
// then more and more rarely; what is not busy is not tried again.
func TestBackoff(t *testing.T) {
	busy := fmt.Errorf("no place: %w", reconcile.ErrBusy)
	for range 1000 {
		var (
			retry = Backoff{Jitter: spread}
			total time.Duration
			tries int
			meant = firstPause
		)
		for wait, again := retry.Again(total, busy); again; wait, again = retry.Again(total, busy) {
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
		if wait, again := (&Backoff{Jitter: spread}).Again(BusyPatience-1, busy); !again || wait != 1 {
			t.Fatalf("at the very end: %s, %v", wait, again)
		}
		if _, again := (&Backoff{Jitter: spread}).Again(BusyPatience, busy); again {
			t.Fatal("asked again after the end")
		}
	}
	for _, err := range []error{nil, reconcile.ErrDenied, reconcile.ErrUnreachable, errors.New("busy")} {
		retry := Backoff{Jitter: spread}
		if wait, again := retry.Again(0, err); again || wait != 0 {
			t.Errorf("after %v: again in %s", err, wait)
		}
	}
}
