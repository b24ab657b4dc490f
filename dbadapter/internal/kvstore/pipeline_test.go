package kvstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/queue"
)

// many is a large batch: keys from one number on, written at a second.
func many(from, second int) (writes []dbadapter.Write) {
	for i := range queue.Large {
		writes = append(writes, write(fmt.Sprint(from+i), second)...)
	}
	return writes
}

type applied struct {
	outcomes []dbadapter.Outcome
	err      error
}

func applyLater(n *namespace, writes []dbadapter.Write) chan applied {
	done := make(chan applied, 1)
	go func() {
		outcomes, err := n.Apply(context.Background(), writes)
		done <- applied{outcomes, err}
	}()
	return done
}

// behindGate opens a namespace whose commits each take an answer from a channel.
func behindGate(t *testing.T) (s *Store, n *namespace, gate chan error) {
	t.Helper()
	var armed atomic.Bool
	gate = make(chan error, 1)
	s, n = openHooked(t, &hooks{commit: func() error {
		if armed.Load() {
			return <-gate
		}
		return nil
	}})
	armed.Store(true)
	return s, n, gate
}

// landingOf waits until a transaction is prepared that is another one than before.
func landingOf(t *testing.T, s *Store, before *prepared) *prepared {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); runtime.Gosched() {
		if p := s.committer.landing.Load(); p != nil && p != before {
			return p
		}
	}
	t.Fatal("no transaction is prepared beside the one that lands")
	return nil
}

// TestPreparedBesideLanding: a large batch is decided while the one before lands, and
// against what that writes.
func TestPreparedBesideLanding(t *testing.T) {
	s, n, gate := behindGate(t)
	first := applyLater(n, many(0, 2))
	lands := landingOf(t, s, nil)
	older, newer := many(0, 1), many(queue.Large/2, 3) // of half of the newer keys, nothing is held
	second := applyLater(n, append(older, newer...))
	landingOf(t, s, lands)
	if n.Latest() != 0 {
		t.Error("a commit shows before it is on the disk")
	}
	gate <- nil
	if got := <-first; got.err != nil {
		t.Fatal(got.err)
	}
	gate <- nil
	got := <-second
	if got.err != nil {
		t.Fatal(got.err)
	}
	for i, o := range got.outcomes {
		want := dbadapter.Applied
		if i < len(older) {
			want = dbadapter.Dominated
		}
		if o.Result != want {
			t.Fatalf("write %d ends with %v, want %v", i, o, want)
		}
	}
	checkLog(t, n, 2*queue.Large)
}

// TestFailureOfTheOneBefore: where the disk fails a commit, the one that was prepared
// beside it fails, too, and so do all others.
func TestFailureOfTheOneBefore(t *testing.T) {
	broken := errors.New("the disk is broken")
	s, n, gate := behindGate(t)
	first := applyLater(n, many(0, 1))
	lands := landingOf(t, s, nil)
	second := applyLater(n, many(0, 2))
	landingOf(t, s, lands)
	gate <- broken
	for _, done := range []chan applied{first, second} {
		if got := <-done; !errors.Is(got.err, broken) || got.outcomes != nil {
			t.Errorf("a batch ends with %v, %v", got.outcomes, got.err)
		}
	}
	for _, writes := range [][]dbadapter.Write{many(0, 3), write("0", 3)} {
		if _, err := n.Apply(t.Context(), writes); !errors.Is(err, broken) {
			t.Errorf("%d writes after that end with %v", len(writes), err)
		}
	}
	checkLog(t, n, 0)
}

// TestNothingBeforeLanding: a batch that writes nothing, since what lands holds all of it,
// ends only when that has landed, and fails with it.
func TestNothingBeforeLanding(t *testing.T) {
	broken := errors.New("the disk is broken")
	for _, fails := range []error{nil, broken} {
		s, n, gate := behindGate(t)
		first := applyLater(n, many(0, 1))
		landingOf(t, s, nil)
		second := applyLater(n, many(0, 1))
		select {
		case got := <-second:
			t.Errorf("a batch ends with %v, %v before what it is found equal to is on the disk", got.outcomes[0], got.err)
			second <- got
		case <-time.After(100 * time.Millisecond):
		}
		gate <- fails
		for _, done := range []chan applied{first, second} {
			if got := <-done; !errors.Is(got.err, fails) || (got.outcomes == nil) != (fails != nil) {
				t.Errorf("a batch ends with %v, want %v", got.err, fails)
			}
		}
	}
}

// checkLog compares the change log from its beginning on with what the namespace holds.
func checkLog(t *testing.T, n *namespace, atLeast int) {
	t.Helper()
	opened := snapshotOf(t, n)
	var sum, held dbadapter.Digest
	changes, records := 0, 0
	for c, err := range n.Changes(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		changes++
		sum, records = sum.Add(c.Delta), records+c.Records
	}
	for r, err := range opened.Scan(t.Context(), nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		held, records = held.Add(r.Digest), records-1
	}
	if sum != held || records != 0 || changes < atLeast {
		t.Errorf("%d changes, want %d at least; they add up to %v, and the records to %v; %d records are not there", changes, atLeast, sum, held, records)
	}
}
