package kvstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// TestCompact collects nine records of ten: their space comes back with Compact,
// beside writes, and what is left reads as before.
func TestCompact(t *testing.T) {
	const records = 20_000
	s, n := openTest(t, t.TempDir(), Options{}, nil)
	var batch []dbadapter.Write
	apply := func(least int) {
		if len(batch) < least {
			return
		}
		apply(t, n, batch)
		batch = batch[:0]
	}
	value := bytes.Repeat([]byte("v"), 1000)
	of := func(i int) dbadapter.Write {
		w := write(fmt.Sprintf("key %08d", i), i)[0]
		w.Record.Value = value
		w.Record = hashed(n.Hasher, w.Record.Record)
		return w
	}
	for i := range records {
		batch = append(batch, of(i))
		apply(1000)
	}
	apply(1)
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	full := s.db.Size()
	for i := range records {
		if i%10 != 0 {
			w := of(i)
			w.Action = dbadapter.Collect
			batch = append(batch, w)
			apply(1000)
		}
	}
	apply(1)
	written := make(chan error)
	go func() {
		for i := range 50 {
			if _, err := n.Apply(context.Background(), write(fmt.Sprint("beside ", i), i)); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	if err := errors.Join(s.Compact(t.Context()), <-written); err != nil {
		t.Fatal(err)
	}
	if left := s.db.Size(); left > full/4 {
		t.Errorf("%d bytes of %d are left when one record of ten is", left, full)
	}
	view := s.db.View() // the queue publishes while it trims: last is its own
	defer view.Close()
	if b, err := kv.Get(view, fillerKey()); b != nil || err != nil {
		t.Errorf("the filler is there still: %d bytes, %v", len(b), err)
	}
	v := snapshotOf(t, n)
	count := 0
	for _, err := range v.Scan(t.Context(), nil, nil) { // compares with the head's sum
		if err != nil {
			t.Fatal(err)
		}
		count++
	}
	if count != records/10+50 {
		t.Errorf("%d records are left", count)
	}
}

// TestCompactNeedsRoom refuses before the merged tables could fill the disk.
func TestCompactNeedsRoom(t *testing.T) {
	s, n := openTest(t, t.TempDir(), Options{}, nil)
	apply(t, n, write("k", 1))
	s.disk.min = 1 << 60
	if err := s.Compact(t.Context()); !errors.Is(err, dbadapter.ErrLimit) {
		t.Errorf("on a full disk: %v, want ErrLimit", err)
	}
}
