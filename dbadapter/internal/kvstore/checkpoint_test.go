package kvstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// TestCopyIsOneMoment copies while batches are written that each change a record
// in two places: no copy holds half of one.
func TestCopyIsOneMoment(t *testing.T) {
	s, n := openTest(t, t.TempDir(), Options{}, nil)
	apply(t, n, append(write("a", 0), write("z", 0)...))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		for i := 1; ctx.Err() == nil; i++ {
			if _, err := n.Apply(context.WithoutCancel(ctx), append(write("a", i), write("z", i)...)); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	var line [][]byte
	var mark []byte
	for i := range 10 {
		b, copied := takeCopy(t, s, mark)
		if copied.Whole {
			line = nil
		}
		if err := s.Settle(t.Context(), copied.Mark); err != nil {
			t.Fatal(err)
		}
		line, mark = append(line, b), copied.Mark
		if i < 5 {
			continue
		}
		snap := must(opened(restored(t, s, line...), n.ID).Snapshot())
		a, errA := snap.Get([]byte("a"))
		z, errZ := snap.Get([]byte("z"))
		snap.Close()
		if errA != nil || errZ != nil || a.Version != z.Version {
			t.Errorf("copy %d: %v %v, %v %v", i, a.Version, errA, z.Version, errZ)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestCopyOfDamage: a copy is made of sound entries only.
func TestCopyOfDamage(t *testing.T) {
	for what, damage := range map[string]func(n *namespace, txn edits) error{
		"a record is gone": func(n *namespace, txn edits) error {
			return txn.Delete(append(appendPrefix(nil, n.Number, kindRecord), "key 00000007"...))
		},
		"a bucket is gone": func(n *namespace, txn edits) error {
			return txn.Delete(appendIndexKey(nil, n.Number, n.Hasher.Index([]byte("key 00000007"))))
		},
		"a record is faulty": func(n *namespace, txn edits) error {
			return txn.Set(append(appendPrefix(nil, n.Number, kindRecord), "key 00000007"...), []byte("faulty"))
		},
	} {
		t.Run(what, func(t *testing.T) {
			s, n := openTest(t, t.TempDir(), Options{}, nil)
			fillTest(t, n, 100)
			if err := update(s, func(txn edits) error { return damage(n, txn) }); err != nil {
				t.Fatal(err)
			}
			s.committer.do(t.Context(), func() error { s.committer.publish(func() {}); return nil })
			c := must(s.Checkpoint(t.Context()))
			defer c.Close()
			if _, err := c.Copy(t.Context(), io.Discard, nil); !errors.Is(err, dbadapter.ErrCorrupt) {
				t.Errorf("copied: %v", err)
			}
		})
	}
}

// TestIncrementCarriesForgottenDeletion deletes records between two copies, and
// lets compactions drop all trace of them from the files: Badger's own incremental
// backup would leave them where they are.
func TestIncrementCarriesForgottenDeletion(t *testing.T) {
	s, n := openTest(t, t.TempDir(), Options{}, nil)
	fillTest(t, n, 100)
	whole, copied := takeCopy(t, s, nil)
	if err := s.Settle(t.Context(), copied.Mark); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		w := write(fmt.Sprintf("key %08d", i), i)
		w[0].If, w[0].Action = &w[0].Record.Version, dbadapter.Collect
		if out, err := n.Apply(t.Context(), w); err != nil || out[0].Result != dbadapter.Applied {
			t.Fatal(out, err)
		}
	}
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	increment, copied := takeCopy(t, s, copied.Mark)
	if copied.Whole {
		t.Fatal("the second copy is whole")
	}
	other := restored(t, s, whole, increment)
	if got, want := entries(t, other), entries(t, s); !maps.Equal(got, want) {
		t.Error(difference(got, want))
	}
}
