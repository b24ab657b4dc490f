package kvstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// fillTest writes records, 4,000 a batch.
func fillTest(t testing.TB, n dbadapter.Namespace, records int) {
	t.Helper()
	for i := 0; i < records; {
		var writes []dbadapter.Write
		for ; i < records && len(writes) < 4000; i++ {
			writes = append(writes, write(fmt.Sprintf("key %08d", i), i)...)
		}
		apply(t, n, writes)
	}
}

// left is how many entries of a number, and whether its mark, are there still.
func left(t testing.TB, s *Store, number uint32) (entries int, marked bool) {
	t.Helper()
	keys, err := s.keys(binary.BigEndian.AppendUint32(nil, number), nil, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	mark, err := s.keys(dropKey(number), nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	return len(keys), len(mark) > 0
}

// unnamed drops a namespace of so many records, and leaves its entries to the
// caller: the eraser is not told.
func unnamed(t testing.TB, s *Store, n *namespace, records int) {
	t.Helper()
	fillTest(t, n, records)
	n.Close()
	if err := s.committer.do(t.Context(), func() error { return s.unname(n.ID) }); err != nil {
		t.Fatal(err)
	}
}

// TestDropGoesOn interrupts a drop after its first pieces, with more entries
// left than one transaction removes: opening the store again does not wait for
// them, and erases them, while the id is in use anew.
func TestDropGoesOn(t *testing.T) {
	const records = 10_000
	dir := t.TempDir()
	s, n := openTest(t, dir, Options{}, nil)
	unnamed(t, s, n, records)
	prefix := binary.BigEndian.AppendUint32(nil, n.Number)
	for range 2 {
		keys, err := s.keys(prefix, nil, erasePiece)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.committer.do(t.Context(), func() error { return s.remove(keys) }); err != nil {
			t.Fatal(err)
		}
	}
	if entries, marked := left(t, s, n.Number); entries < records+4096 || !marked {
		t.Fatalf("after two pieces %d entries are left, marked: %v", entries, marked)
	}
	s.Close()

	s, anew := openTest(t, dir, Options{}, nil)
	apply(t, anew, write("k", 1))
	waitFor(t, func() bool { _, marked := left(t, s, n.Number); return !marked })
	if entries, _ := left(t, s, n.Number); entries != 0 {
		t.Errorf("%d entries are left of a namespace whose mark is gone", entries)
	}
	v := snapshotOf(t, anew)
	if _, err := v.Get([]byte("k")); err != nil || v.Seq() != 1 {
		t.Errorf("the namespace made anew holds change %d, %v", v.Seq(), err)
	}
}

// TestDropIsLinear erases several pieces: each is sought from behind the one
// before. From the first entry on, Badger would step over all that was deleted.
func TestDropIsLinear(t *testing.T) {
	var sought [][]byte
	var all []byte // the prefix of all entries; nil: it does not count
	s, n := openHooked(t, &hooks{seek: func(prefix, to []byte) {
		if all != nil && bytes.Equal(prefix, all) {
			sought = append(sought, bytes.Clone(to))
		}
	}})
	unnamed(t, s, n, 4000)
	entries, _ := left(t, s, n.Number)
	all = binary.BigEndian.AppendUint32(nil, n.Number)
	if err := (dropped{s}).Erase(t.Context(), n.Number); err != nil {
		t.Fatal(err)
	}
	if want := (entries+erasePiece-1)/erasePiece + 1; len(sought) != want {
		t.Errorf("%d entries are erased in %d pieces, want %d", entries, len(sought), want)
	}
	for i := 1; i < len(sought); i++ {
		if bytes.Compare(sought[i-1], sought[i]) >= 0 {
			t.Errorf("piece %d is sought from %q on, after %q", i, sought[i], sought[i-1])
		}
	}
}

// TestDropWithdrawn cancels a drop that waits behind a commit.
func TestDropWithdrawn(t *testing.T) {
	s, n := openTest(t, t.TempDir(), Options{}, nil)
	n.Close()
	entered, release := make(chan struct{}), make(chan struct{})
	busy := make(chan error, 1)
	go func() {
		busy <- s.committer.do(context.Background(), func() error {
			close(entered)
			<-release
			return nil
		})
	}()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	dropped := make(chan error, 1)
	go func() { dropped <- s.Drop(ctx, n.ID) }()
	waitFor(t, func() bool { return s.committer.queue.Len() == 1 })
	cancel()
	if err := <-dropped; !errors.Is(err, context.Canceled) {
		t.Errorf("a drop that was cancelled gives %v", err)
	}
	close(release)
	if err := <-busy; err != nil {
		t.Fatal(err)
	}
	if _, marked := left(t, s, n.Number); marked {
		t.Error("a drop that was cancelled was done")
	}
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// TestQuiet lets a store do what stores do, at every level: it has nothing to
// say. A drop that cannot be finished is told.
func TestQuiet(t *testing.T) {
	var log lockedBuffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	dir := t.TempDir()
	s, n := openTest(t, dir, Options{Logger: logger, LogLimit: 100}, nil)
	fillTest(t, n, 8000)
	n.Close()
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if got := log.String(); got != "" {
		t.Errorf("the log of a store that is well:\n%s", got)
	}
	s, n = openTest(t, dir, Options{Logger: logger, MinFree: tight(t).MinFree}, nil)
	n.Close()
	if err := s.Drop(t.Context(), n.ID); err != nil {
		t.Errorf("a drop on a full disk gives %v", err)
	}
	if err := update(s, func(txn edits) error { return txn.Set(dropKey(n.Number), nil) }); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s, err := openEngine(dir, Options{Logger: logger, MinFree: 1 << 62}) // with no room for removals, either
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		return strings.Contains(log.String(), "opened for reading") && strings.Contains(log.String(), "nearly full")
	})
	s.Close()
	s, _ = openTest(t, dir, Options{Logger: logger}, nil)
	waitFor(t, func() bool { _, marked := left(t, s, n.Number); return !marked })
}
