package badgerkv

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// single stands for a store that commits nothing else.
type single struct {
	db    *db
	pause func()
}

func (s single) Pause(context.Context) { s.pause() }

func (s single) Fill(_ context.Context, value []byte) error {
	txn := s.db.Begin()
	defer txn.Discard()
	change := func() error { return txn.Set([]byte("filler"), value) }
	if value == nil {
		change = func() error { return txn.Delete([]byte("filler")) }
	}
	return errors.Join(change(), txn.Commit())
}

func (s single) Between(_ context.Context, run func([]byte) error) error {
	return run([]byte("filler"))
}

// TestCompactionEnds: a compaction whose context ends does so before its next step, and
// the database works on.
func TestCompactionEnds(t *testing.T) {
	const entries = 2000
	d, err := Engine{NoSync: true}.open(t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	none := single{d, func() {}}
	write := func(round int) {
		t.Helper()
		value := make([]byte, 1000)
		value[0] = byte(round)
		txn := d.Begin()
		for i := range entries {
			if err := txn.Set(fmt.Appendf(nil, "key %08d", i), value); err != nil {
				t.Fatal(err)
			}
		}
		if err := txn.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	for round := 0; d.isSmall(); round++ {
		if round == 20 {
			t.Fatal("all tables stand in the first level still")
		}
		write(round)
		if err := d.flush(t.Context(), none); err != nil {
			t.Fatal(err)
		}
	}
	write(99)
	ctx, cancel := context.WithCancel(t.Context())
	steps := 0
	if err := d.Compact(ctx, single{d, func() { steps++; cancel() }}); !errors.Is(err, context.Canceled) || steps != 1 {
		t.Errorf("a compaction of which the context ends before its first step: %v, %d steps", err, steps)
	}
	if err := d.Compact(t.Context(), none); err != nil {
		t.Errorf("the next compaction: %v", err)
	}
	if stale, size, err := d.Stale(t.Context(), none); err != nil || stale > 4*fillerSize {
		t.Errorf("%d of %d bytes are stale after a compaction, %v", stale, size, err)
	}
	view := d.View()
	defer view.Close()
	for i := range entries {
		if value, err := kv.Get(view, fmt.Appendf(nil, "key %08d", i)); err != nil || len(value) != 1000 || value[0] != 99 {
			t.Fatalf("entry %d: %d bytes, %v", i, len(value), err)
		}
	}
}
