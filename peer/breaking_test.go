package peer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
)

// full is a namespace of a store that takes no more.
type full struct{ dbadapter.Namespace }

var errFull = errors.New("the disk is full")

func (full) Apply(context.Context, []dbadapter.Write) ([]dbadapter.Outcome, error) {
	return nil, errFull
}

// A side that breaks off a sync, whichever it is, lets the other one go at once, also
// where that has much more to send; it learns why where it has little.
func TestBreakingOff(t *testing.T) { overEach(t, breakingOff) }

func breakingOff(t *testing.T, listen []string) {
	for _, records := range []int{1, 40} {
		for _, caller := range []string{"full", "giving"} {
			t.Run(fmt.Sprintf("%d records, the %s side calls", records, caller), func(t *testing.T) {
				cfg := Config{ListenAddrs: listen, Limits: Limits{IdleTimeout: time.Hour}}
				a, b := openForTest(t, cfg), openForTest(t, cfg)
				giving := createForTest(t, a, Policy{})
				must(t, errOf(giving.Put(t.Context(), []byte("common"), nil)))
				taking := joinForTest(t, giving, b, RoleWrite)
				for i := range records {
					must(t, errOf(giving.Put(t.Context(), fmt.Append(nil, i), make([]byte, 1<<20))))
				}
				taking.shards()[0].set.Store = full{taking.shards()[0].set.Store}
				ended := make(chan error, 1)
				if caller == "full" {
					if _, err := taking.Sync(t.Context(), a.self.id, SyncOptions{}); !errors.Is(err, errFull) {
						t.Errorf("the full side: %v", err)
					}
					eventually(t, "the giving side has ended", func() bool { return a.running.Load() == 0 })
				} else {
					go func() {
						_, err := giving.Sync(t.Context(), b.self.id, SyncOptions{})
						ended <- err
					}()
					var err error
					select {
					case err = <-ended:
					case <-time.After(5 * time.Minute):
						t.Fatal("the giving side waits")
					}
					if !errors.Is(err, ErrUnreachable) && !errors.Is(err, reconcile.ErrPeer) || records == 1 && errors.Is(err, ErrUnreachable) {
						t.Errorf("the giving side: %v", err)
					}
				}
			})
		}
	}
}
