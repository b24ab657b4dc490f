package replica

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
)

// An audit finds a cell and the sum of a range that are wrong, while records are
// written, and puts both right.
func TestAudit(t *testing.T) {
	s := newSide(t)
	for i := range 500 {
		s.put(record(fmt.Sprint(i), "v", at(0)))
	}
	number := 0
	during := writingSnapshots{s.ns, func() {
		number++
		s.put(record(fmt.Sprint("during", number), "", at(time.Hour)), record("1", fmt.Sprint(number), at(time.Duration(number)*time.Hour)))
	}}
	if d, err := s.live.Audit(t.Context(), during, nil); err != nil || d.Any() || s.live.Drifted() != 0 {
		t.Fatalf("a sound state has drifted: %v, %v", d, err)
	}
	s.live.mu.Lock()
	s.live.sketch.Add(rateless.Pair{Index: 77, Checksum: rateless.Seal(77, 5)})
	s.live.ranges.Add(3<<30, dbadapter.Sum{Records: 1})
	s.live.mu.Unlock()
	open := s.snapshot()
	d, err := s.live.Audit(t.Context(), during, nil)
	if err != nil || d.Ranges != 1 || d.Cells < 2 || s.live.Drifted() != 1 {
		t.Fatalf("the drift is %v, %v; counted %d times", d, err, s.live.Drifted())
	}
	if _, err := open.Cells(0, 64); err != nil {
		t.Errorf("a snapshot that was open: %v", err)
	}
	open.Close()
	k := recomputed(t, s)
	sameRanges(t, s.live.ranges, k.ranges)
	want := rateless.NewSketch(s.keys.Cells, 100)
	snap, err := s.ns.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	if err := want.AddAll(coded.Pairs(snap.Pairs(context.Background(), 0, 0))); err != nil {
		t.Fatal(err)
	}
	for i, c := range s.live.sketch.Prefix(100) {
		if c != want.Prefix(100)[i] {
			t.Fatalf("cell %d is still wrong", i)
		}
	}
	if d, err := s.live.Audit(t.Context(), s.ns, nil); err != nil || d.Any() {
		t.Errorf("once it is put right, the drift is %v, %v", d, err)
	}
}

// A summary gives the state back, brought up to date by the changes since; cut short
// or changed anywhere it is refused, or gives what the records give.
func TestSummary(t *testing.T) {
	s := newSide(t)
	for i := range 300 {
		s.put(record(fmt.Sprint(i), "v", at(0)))
	}
	seq, summary := s.live.Summary()
	for i := range 100 {
		s.put(record(fmt.Sprint(i*5), "w", at(time.Hour)))
	}
	s.take(dbadapter.Collect, "5", "10", "15")
	restore := func(summary []byte) (*Live, error) {
		l := New(s.keys)
		return l, l.Restore(seq, summary, s.ns.Changes(t.Context(), seq))
	}
	l, err := restore(summary)
	if err != nil {
		t.Fatal(err)
	}
	wantSeq, want := s.live.Summary()
	if gotSeq, got := l.Summary(); gotSeq != wantSeq || string(got) != string(want) {
		t.Error("the restored state is another one")
	}
	for _, end := range []int{0, 1, summaryHead - 1, summaryHead, len(summary) / 2, len(summary) - summaryEnd, len(summary) - 1} {
		if _, err := restore(summary[:end]); err == nil {
			t.Errorf("a summary cut short at %d of %d is taken up", end, len(summary))
		}
	}
	if _, err := restore(append(summary[:len(summary):len(summary)], 0)); err == nil {
		t.Error("a summary that is too long is taken up")
	}
	for _, at := range []int{0, 1, 2, 33, 34, 35, len(summary) - 3} {
		summary[at] ^= 4
		if _, err := restore(summary); err == nil {
			t.Errorf("a summary that is wrong at %d is taken up", at)
		}
		summary[at] ^= 4
	}
	if err := New(s.keys).Restore(seq, summary, s.ns.Changes(t.Context(), seq+1)); err == nil {
		t.Error("a log with a gap is replayed")
	}
}

// A peer's bytes do not come here, a disk's do: whatever they are, a summary is
// refused or read, without a panic.
func FuzzSummary(f *testing.F) {
	s := newSide(f)
	_, summary := s.live.Summary()
	f.Add(summary)
	f.Add(summary[:100])
	f.Fuzz(func(t *testing.T, b []byte) {
		l := New(s.keys)
		if err := l.Restore(0, b, func(func(dbadapter.Change, error) bool) {}); err == nil {
			if _, again := l.Summary(); string(again) != string(b) {
				t.Error("what was read is written in another way")
			}
		}
	})
}
