package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

func testSnapshots(t *testing.T, h Harness) {
	e := newEnvWith(t, h, manyChanges, Weak(hasher(), 3))
	tw := newTwin(e.hasher)
	type kept struct {
		snapshot dbadapter.Snapshot
		twin     *twin
	}
	var all []kept
	for round := range 20 {
		var writes []write
		for i := range 10 {
			writes = append(writes, put(fmt.Sprint((round+i*i)%25), fmt.Sprint(round), at(round)))
		}
		e.apply(writes...)
		tw.apply(writes)
		all = append(all, kept{e.snapshot(), tw.clone()})
	}
	for i, k := range all {
		if err := k.twin.compare(k.snapshot); err != nil {
			t.Errorf("the snapshot of round %d, read after the last: %v", i, err)
		}
		if i > 0 && k.snapshot.Seq() <= all[i-1].snapshot.Seq() {
			t.Errorf("the snapshot of round %d is as of change %d, the one before as of %d", i, k.snapshot.Seq(), all[i-1].snapshot.Seq())
		}
	}
	// A scan goes on while its namespace is written to.
	s := e.snapshot()
	var got []dbadapter.Record
	for r, err := range s.Scan(context.Background(), nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		e.apply(put(string(r.Key), "new", at(100)), put("0"+string(r.Key), "new", at(100)))
		got = append(got, r.Record)
	}
	if err := same("Scan under writes", got, tw.sorted(nil, nil)); err != nil {
		t.Error(err)
	}
}

// testBuckets puts many keys under few indices, and looks at each step.
func testBuckets(t *testing.T, h Harness) {
	e := newEnvWith(t, h, manyChanges, Weak(hasher(), 1))
	tw := newTwin(e.hasher)
	for i, key := range []string{"d", "b", "a", "c", "ab", "b", "a", "d"} {
		w := put(key, fmt.Sprint(i), at(i))
		if i == 6 {
			w = del(key, at(i))
		}
		e.want(w, dbadapter.Applied)
		tw.apply([]write{w})
		e.check(tw)
	}
	// One commit that writes several records of one bucket is one change.
	seq := len(e.observed)
	var writes []write
	for i := range 40 {
		writes = append(writes, put(fmt.Sprint(i), "", at(50)))
	}
	e.apply(writes...)
	tw.apply(writes)
	e.check(tw)
	if got := len(e.observed) - seq; got != 2 {
		t.Errorf("a commit that touches two indices makes %d changes", got)
	}
	e.reopen()
	if err := tw.compare(e.snapshot()); err != nil {
		t.Errorf("reopened: %v", err)
	}
}

// testLog compares the log with what was observed, from each point on.
func testLog(t *testing.T, h Harness) {
	e := newEnvWith(t, h, manyChanges, Weak(hasher(), 5))
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		var writes []write
		for range 1 + random.IntN(8) {
			writes = append(writes, put(fmt.Sprint(random.IntN(60)), fmt.Sprint(i), at(random.IntN(60))))
		}
		e.apply(writes...)
	}
	var big []write
	for i := range 3000 {
		big = append(big, put(fmt.Sprint("big", i), "", at(1)))
	}
	e.apply(big...)
	e.checkLog(0)
	sums := make(map[dbadapter.Index]dbadapter.Checksum)
	for _, c := range e.observed {
		if sums[c.Index] != c.Old {
			t.Fatalf("change %d says the checksum was %d, and it was %d", c.Seq, c.Old, sums[c.Index])
		}
		sums[c.Index] = c.New
	}
	e.reopen()
	e.checkLog(0)
}

// checkLog compares the log after each observed change with what was observed.
// Changes up to trimmed may be gone.
func (e *env) checkLog(trimmed uint64) {
	e.Helper()
	end := uint64(len(e.observed))
	afters := []uint64{end + 5, end, trimmed}
	for after := trimmed; after < end; after += 1 + (end-trimmed)/50 {
		afters = append(afters, after)
	}
	for _, after := range afters {
		next := after + 1
		for c, err := range e.namespace.Changes(context.Background(), after) {
			if err != nil {
				e.Fatalf("the log after %d: %v", after, err)
			}
			if c.Seq != next || next > end {
				e.Fatalf("the log after %d gives change %d, want %d of %d", after, c.Seq, next, end)
			}
			if o := e.observed[c.Seq-1]; c.Index != o.Index || c.Old != o.Old || c.New != o.New {
				e.Fatalf("the log has %+v, observed was %+v", c, o)
			}
			next++
		}
		if next != max(end, after)+1 {
			e.Fatalf("the log after %d ends with %d, want %d", after, next-1, end)
		}
	}
	for range e.namespace.Changes(context.Background(), trimmed) { // left early
		break
	}
}

func testTrim(t *testing.T, h Harness) {
	const limit = 100
	e := newEnvWith(t, h, limit, hasher())
	for i := range 150 {
		e.apply(put(fmt.Sprint("a", i), "", at(i)), put(fmt.Sprint("b", i), "", at(i)), put(fmt.Sprint("c", i), "", at(i)), put(fmt.Sprint("d", i), "", at(i)))
	}
	check := func() {
		t.Helper()
		end := uint64(len(e.observed))
		e.checkLog(end - limit)
		err := errors.New("no answer")
		for _, err = range e.namespace.Changes(context.Background(), 1) {
			break
		}
		if !errors.Is(err, dbadapter.ErrTrimmed) {
			t.Errorf("the log of %d changes, of which %d are kept, gives %v after 1, want ErrTrimmed", end, limit, err)
		}
	}
	check()
	e.reopen()
	check()
}

func testConcurrent(t *testing.T, h Harness) {
	e := newEnvWith(t, h, manyChanges, Weak(hasher(), 6))
	const writers, rounds = 8, 30
	done := make(chan []write)
	for w := range writers {
		go func() {
			var mine []write
			defer func() { done <- mine }()
			random := rand.New(rand.NewPCG(uint64(w), 7))
			for i := range rounds {
				var writes []write
				for range 1 + random.IntN(4) {
					v := at(i)
					v.Writer = dbadapter.WriterID(w)
					writes = append(writes, put(fmt.Sprint(random.IntN(40)), fmt.Sprint(w, i), v))
				}
				if _, err := submit(context.Background(), e.namespace, e.hasher, writes); err != nil {
					t.Errorf("Apply: %v", err)
					return
				}
				mine = append(mine, writes...)
			}
		}()
	}
	// Readers: every snapshot is consistent in itself, and none goes back.
	stop, read := make(chan struct{}), make(chan error)
	for range 2 {
		go func() { read <- readUntil(e, stop) }()
	}
	var all []write
	for range writers {
		all = append(all, <-done...)
	}
	close(stop)
	for range 2 {
		if err := <-read; err != nil {
			t.Error(err)
		}
	}
	tw := newTwin(e.hasher)
	tw.apply(all) // last writer wins: the order does not matter
	e.check(tw)
	e.checkLog(0)
}

// readUntil opens snapshots and checks that pairs and records agree.
func readUntil(e *env, stop <-chan struct{}) error {
	last := uint64(0)
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		s, err := e.namespace.Snapshot()
		if err != nil {
			return err
		}
		if s.Seq() < last {
			return fmt.Errorf("a snapshot as of change %d after one as of %d", s.Seq(), last)
		}
		last = s.Seq()
		e.mu.Lock()
		observed := uint64(len(e.observed))
		e.mu.Unlock()
		if observed < last {
			return fmt.Errorf("a snapshot as of change %d, of which only %d were observed", last, observed)
		}
		tw, err := recount(context.Background(), e.hasher, s)
		if err != nil {
			return err
		}
		e.mu.Lock()
		var sum dbadapter.Digest
		for _, c := range e.observed[:last] {
			sum = sum.Add(c.Delta)
		}
		e.mu.Unlock()
		if sum != tw.digest() {
			return fmt.Errorf("the deltas up to change %d do not sum up to the digest of the snapshot", last)
		}
		if err := s.Close(); err != nil {
			return err
		}
	}
}
