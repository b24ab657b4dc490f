package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// summaryOf is a summary that no other length or seed gives.
func summaryOf(seed byte, length int) []byte {
	b := make([]byte, length)
	for i := range b {
		b[i] = seed ^ byte(i*i>>8) ^ byte(i)
	}
	return b
}

func (e *env) saves(seq uint64, summary []byte) {
	e.Helper()
	if err := e.namespace.SaveSummary(context.Background(), seq, summary); err != nil {
		e.Fatalf("SaveSummary of %d bytes: %v", len(summary), err)
	}
}

func (e *env) wantSummary(seq uint64, want []byte) {
	e.Helper()
	got, summary, err := e.namespace.Summary(context.Background())
	if err != nil || got != seq || !bytes.Equal(summary, want) {
		e.Fatalf("the summary is %d bytes up to change %d, %v; want %d bytes up to %d", len(summary), got, err, len(want), seq)
	}
}

func (e *env) wantNoSummary() {
	e.Helper()
	if _, _, err := e.namespace.Summary(context.Background()); !errors.Is(err, dbadapter.ErrNotFound) {
		e.Fatalf("the summary of a namespace that has none gives %v, want ErrNotFound", err)
	}
}

// testSummary keeps summaries of many lengths, one in place of the other.
func testSummary(t *testing.T, h Harness) {
	e := newEnv(t, h)
	ctx := context.Background()
	e.wantNoSummary()
	for i := range 20 {
		e.apply(put(fmt.Sprint(i), "v", at(i)))
	}
	e.saves(0, nil)
	e.wantSummary(0, nil)
	for i, length := range []int{1, dbadapter.MaxSummary, 1000, 256 << 10, 256<<10 + 1, 3 << 20, 7} {
		summary := summaryOf(byte(i), length)
		e.saves(uint64(i), summary)
		clear(summary)
		e.wantSummary(uint64(i), summaryOf(byte(i), length))
		if i%3 == 0 {
			e.reopen()
			e.wantSummary(uint64(i), summaryOf(byte(i), length))
		}
	}
	e.saves(3, summaryOf(9, 10)) // an older one is the caller's affair
	if err := e.namespace.SaveSummary(ctx, 3, make([]byte, dbadapter.MaxSummary+1)); !errors.Is(err, dbadapter.ErrLimit) {
		t.Errorf("a summary that is too long gives %v, want ErrLimit", err)
	}
	if err := e.namespace.SaveSummary(ctx, 21, nil); err == nil {
		t.Error("a summary of changes that have not been made is kept")
	}
	e.wantSummary(3, summaryOf(9, 10))
	other := e.neighbour(2, e.hasher)
	other.wantNoSummary()
	other.saves(0, summaryOf(1, 400<<10))
	e.namespace.Close()
	if err := e.store.Drop(ctx, e.id); err != nil {
		t.Fatal(err)
	}
	e.begin(1)
	e.wantNoSummary()
	other.wantSummary(0, summaryOf(1, 400<<10))
}

// testReach writes ever more after a summary was kept. The log reaches back to it,
// within its bound, and no longer than that.
func testReach(t *testing.T, h Harness) {
	const limit, each = 50, 10
	e := newEnvWith(t, h, limit, hasher())
	number := 0
	write := func(changes int) {
		for range changes / each {
			var writes []write
			for range each {
				number++
				writes = append(writes, put(fmt.Sprint(number%40), "", at(number)))
			}
			e.apply(writes...)
		}
	}
	read := func(after uint64) (count int, err error) {
		for _, err = range e.namespace.Changes(context.Background(), after) {
			if err != nil {
				return count, err
			}
			count++
		}
		return count, nil
	}
	write(3 * limit)
	seq := uint64(number)
	e.saves(seq, summaryOf(1, 100))
	for behind := 0; behind < dbadapter.LogReach*limit; behind += 2 * limit {
		write(2 * limit)
		if count, err := read(seq); err != nil || count != behind+2*limit {
			t.Fatalf("the log after the summary, %d changes back, gives %d and %v", behind+2*limit, count, err)
		}
		if behind == 4*limit {
			e.reopen()
		}
	}
	write(3 * dbadapter.LogReach * limit)
	if _, err := read(seq); !errors.Is(err, dbadapter.ErrTrimmed) {
		t.Errorf("the log after a summary that is %d changes old gives %v, want ErrTrimmed", uint64(number)-seq, err)
	}
	seq = uint64(number)
	e.saves(seq, summaryOf(2, 100))
	write(limit)
	if _, err := read(seq - 4*limit); !errors.Is(err, dbadapter.ErrTrimmed) {
		t.Errorf("once a newer summary is kept, the log of before gives %v, want ErrTrimmed", err)
	}
	if count, err := read(seq); err != nil || count != limit {
		t.Errorf("the log after the newer summary gives %d changes and %v, want %d", count, err, limit)
	}
	e.checkLog(limit)
}

// saveAgain saves summaries and reads them, one of several savers at a time: each that is
// read is one that was saved.
func saveAgain(e *env, saver, rounds int) error {
	const least = 300 << 10
	ctx := context.Background()
	for i := range rounds {
		seed := saver*rounds + i
		if err := e.namespace.SaveSummary(ctx, uint64(seed)%2, summaryOf(byte(seed), least+seed)); err != nil {
			return fmt.Errorf("save a summary: %w", err)
		}
		seq, summary, err := e.namespace.Summary(ctx)
		if err != nil {
			return fmt.Errorf("read the summary: %w", err)
		}
		seed = len(summary) - least
		if !bytes.Equal(summary, summaryOf(byte(seed), len(summary))) || seq != uint64(seed)%2 {
			return fmt.Errorf("the summary of %d bytes up to change %d was never saved", len(summary), seq)
		}
	}
	return nil
}
