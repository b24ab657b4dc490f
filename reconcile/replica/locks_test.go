package replica

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// unlocked is a namespace that checks the lock order: it is never called while
// the live sketch is locked. A store may hold its own locks while it waits for
// Observe, so that such a call could wait for ever.
type unlocked struct {
	dbadapter.Namespace
	t    *testing.T
	live *Live
	// opened is called when a snapshot has been opened.
	opened func()
	// open counts the snapshots that have not been closed.
	open int
}

func (u *unlocked) check(call string) {
	u.t.Helper()
	if !u.live.mu.TryLock() {
		u.t.Errorf("%s is called while the live sketch is locked", call)
		return
	}
	u.live.mu.Unlock()
}

func (u *unlocked) Snapshot() (dbadapter.Snapshot, error) {
	u.check("Snapshot")
	snap, err := u.Namespace.Snapshot()
	if u.opened != nil {
		u.opened()
	}
	u.open++
	return &unlockedSnapshot{Snapshot: snap, ns: u}, err
}

type unlockedSnapshot struct {
	dbadapter.Snapshot
	ns     *unlocked
	closed bool
}

func (s *unlockedSnapshot) Seq() uint64 { return s.Snapshot.Seq() }

func (s *unlockedSnapshot) Scan(ctx context.Context, prefix, after []byte) iter.Seq2[dbadapter.Hashed, error] {
	s.ns.check("Scan")
	return s.Snapshot.Scan(ctx, prefix, after)
}

func (s *unlockedSnapshot) Pairs(ctx context.Context, from, to dbadapter.Index) iter.Seq2[dbadapter.Pair, error] {
	s.ns.check("Pairs")
	return s.Snapshot.Pairs(ctx, from, to)
}

func (s *unlockedSnapshot) Lookup(indices []dbadapter.Index, sums []dbadapter.Checksum) error {
	s.ns.check("Lookup")
	return s.Snapshot.Lookup(indices, sums)
}

func (s *unlockedSnapshot) Buckets(indices []dbadapter.Index) ([][]dbadapter.Hashed, error) {
	s.ns.check("Buckets")
	return s.Snapshot.Buckets(indices)
}

func (s *unlockedSnapshot) Close() error {
	s.ns.check("Close")
	if !s.closed {
		s.closed = true
		s.ns.open--
	}
	return s.Snapshot.Close()
}

// The store is never called while the live sketch is locked, not even where
// opening a snapshot fails.
func TestLockOrder(t *testing.T) {
	s := newSide(t)
	s.fill("k", 3000)
	ns := &unlocked{Namespace: s.ns, t: t, live: s.live}

	snap, err := s.live.Snapshot(t.Context(), ns, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := snap.Cells(s.live.Cells()-10, s.live.Cells()+10); err != nil {
		t.Fatal(err)
	}
	for r, err := range snap.All() {
		if err != nil {
			t.Fatal(err)
		}
		i := s.keys.Hasher.Index(r.Key)
		if _, err := snap.Buckets([]dbadapter.Index{i}); err != nil {
			t.Fatal(err)
		}
		if err := snap.Lookup([]dbadapter.Index{i}, make([]dbadapter.Checksum, 1)); err != nil {
			t.Fatal(err)
		}
		break
	}
	snap.Decoded()
	if err := snap.Close(); err != nil {
		t.Error(err)
	}

	prefix, err := s.live.Prefix(t.Context(), ns, []byte("k1"), wire.Span{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := prefix.Close(); err != nil {
		t.Error(err)
	}

	s.pretend(1 << 18)
	if grown, err := s.live.Grow(t.Context(), ns, nil); !grown || err != nil {
		t.Error(grown, err)
	}
	s.pretend(-1 << 18)

	// More is written between the opening of the store's snapshot and the look
	// at the changes since than is remembered.
	ns.opened = func() {
		changes := make([]dbadapter.Change, maxUndo+1)
		_, _, seq := s.live.State()
		for i := range changes {
			changes[i] = dbadapter.Change{Seq: seq + 1 + uint64(i), Index: 5}
		}
		s.live.Observe(changes)
	}
	if _, err := s.live.Snapshot(t.Context(), ns, nil); !errors.Is(err, reconcile.ErrBusy) {
		t.Errorf("a snapshot that was passed by %d changes: %v", maxUndo+1, err)
	}
	if ns.open != 0 {
		t.Errorf("%d snapshots of the store are open", ns.open)
	}
}
