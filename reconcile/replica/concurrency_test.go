package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
)

// Snapshots that are opened, read and dropped beside writers are each as of one
// commit: their cells are those of their pairs, their digest that of their
// records.
func TestSnapshotsBesideWriters(t *testing.T) {
	s := newSide(t)
	s.live.undo.bound = 50
	var writers, readers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() {
			for n := range 500 {
				s.put(record(fmt.Sprint("k", (n+w)%20), fmt.Sprint(w), at(time.Duration(n)*time.Second)))
				if n%2 == 0 {
					s.take(dbadapter.Collect, fmt.Sprint("k", (n+w+7)%20))
				}
			}
		})
	}
	for range 3 {
		readers.Go(func() {
			for range 50 {
				snap, err := s.live.Snapshot(context.Background(), s.ns, nil)
				if err != nil {
					if !errors.Is(err, reconcile.ErrBusy) {
						t.Error(err)
					}
					continue
				}
				if err := compareCells(snap); err != nil && !errors.Is(err, reconcile.ErrBusy) {
					t.Error(err)
				}
				checkDigest(t, snap)
				if err := snap.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	readers.Wait()
	if len(s.live.undo.marks) != 0 || s.live.undo.changes != nil {
		t.Error("closed snapshots still take memory")
	}
}

// checkDigest fails unless the digest and the number are those of the records.
func checkDigest(t *testing.T, s *Snapshot) {
	t.Helper()
	var digest dbadapter.Digest
	var records uint64
	for r, err := range s.store.Scan(context.Background(), nil, nil) {
		if err != nil {
			t.Error(err)
			return
		}
		digest = digest.Add(r.Digest)
		records++
	}
	if s.Sum().Digest != digest || s.Sum().Records != records {
		t.Error("the digest or the number is not that of the records")
	}
}
