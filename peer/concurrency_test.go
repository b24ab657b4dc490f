package peer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/reconcile"
)

// Writers, readers and syncs in both directions at once; then all is equal.
func TestBusyNodes(t *testing.T) {
	onBothStores(t, func(t *testing.T, a, b peer.Config) {
		na, nb, sa, sb := pair(t, a, b, peer.Policy{})
		var wg sync.WaitGroup
		for w, ns := range []*peer.Namespace{sa, sb, sa, sb} {
			wg.Go(func() {
				for i := range 60 {
					key := fmt.Appendf(nil, "%d", i%20)
					if _, err := ns.Put(t.Context(), key, fmt.Appendf(nil, "%d %d", w, i)); err != nil {
						t.Error(err)
					}
					if i%7 == 0 {
						if _, err := ns.Delete(t.Context(), key); err != nil && !errors.Is(err, peer.ErrDeleted) {
							t.Error(err)
						}
					}
				}
			})
		}
		for _, s := range []struct {
			ns *peer.Namespace
			id peer.ID
		}{{sa, nb.ID()}, {sb, na.ID()}} {
			wg.Go(func() {
				for range 8 {
					if _, err := s.ns.Sync(t.Context(), s.id, peer.SyncOptions{}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		sync1(t, sa, nb.ID())
		equal(t, sa, sb)
	})
}

func TestCloseWhileSyncing(t *testing.T) {
	for _, which := range []string{"initiator", "responder"} {
		t.Run(which, func(t *testing.T) {
			na, nb, sa, sb := pair(t, peer.Config{}, peer.Config{}, peer.Policy{Unsigned: true})
			must(t, errOf(sa.Import(t.Context(), numbered(5000))))
			victim := nb
			if which == "responder" {
				victim = na
			}
			var once sync.Once
			closed := make(chan error, 1)
			_, err := sb.Sync(t.Context(), na.ID(), peer.SyncOptions{Progress: func(reconcile.Report) {
				once.Do(func() {
					go func() { closed <- victim.Close(context.Background()) }()
					for { // until the closing has begun
						if _, err := victim.CreateNamespace(context.Background(), "notes", peer.Policy{}); errors.Is(err, peer.ErrClosed) {
							return
						}
					}
				})
			}})
			if err != nil && !errors.Is(err, peer.ErrClosed) && !errors.Is(err, peer.ErrUnreachable) {
				t.Errorf("sync: %v", err)
			}
			if err := <-closed; err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
}

func TestSyncIsCutByItsContext(t *testing.T) {
	_, nb, sa, _ := pair(t, peer.Config{}, peer.Config{}, peer.Policy{})
	put(t, sa, "k", "v")
	ctx, cancel := context.WithCancel(t.Context())
	_, err := sa.Sync(ctx, nb.ID(), peer.SyncOptions{Progress: func(reconcile.Report) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("sync: %v", err)
	}
}

func TestBackgroundSyncs(t *testing.T) {
	_, _, sa, sb := pair(t, peer.Config{SyncInterval: 5 * time.Millisecond}, peer.Config{}, peer.Policy{})
	put(t, sa, "a", "1")
	put(t, sb, "b", "2")
	eventually(t, "the two are equal", func() bool { return sa.Info().Digest == sb.Info().Digest })
	if sa.Info().Records != 2 {
		t.Errorf("%d records", sa.Info().Records)
	}
}

// On one node PutIf is a compare-and-swap: no increment is lost.
func TestCounter(t *testing.T) {
	n := open(t, peer.Config{})
	ns := create(t, n, peer.Policy{Unsigned: true})
	key := []byte("counter")
	put(t, ns, "counter", "0")
	var wg sync.WaitGroup
	const workers, each = 4, 50
	for range workers {
		wg.Go(func() {
			for done := 0; done < each; {
				rec, err := ns.Get(t.Context(), key)
				if err != nil {
					t.Error(err)
					return
				}
				var count int
				fmt.Sscan(string(rec.Value), &count)
				_, err = ns.PutIf(t.Context(), key, fmt.Append(nil, count+1), rec.Version)
				switch {
				case err == nil:
					done++
				case !errors.Is(err, peer.ErrConflict):
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if rec, err := ns.Get(t.Context(), key); err != nil || string(rec.Value) != fmt.Sprint(workers*each) {
		t.Errorf("the counter says %s, %v", rec.Value, err)
	}
}
