package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

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
	// Readers: every snapshot is consistent in itself, and no older than the last.
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
	tw.apply(all) // last writer wins: the order does not matter but for the kept log
	e.checkSet(tw)
	e.checkLog(0)
}

// testLargeBatches has callers write large batches to the same keys, one after the other
// without a pause. A store may decide one while the one before it lands. What was acknowledged
// is held, or a greater record is, and the log says why.
func testLargeBatches(t *testing.T, h Harness) {
	e := newEnvWith(t, h, manyChanges, hasher())
	const callers, batches, size, keys = 2, 6, 640, 800
	var all [callers][]write
	call := func(caller int) func() error {
		return func() error {
			random := rand.New(rand.NewPCG(uint64(caller), 8))
			for i := range batches {
				writes := make([]write, size)
				for n := range writes {
					v := at(random.IntN(batches))
					v.Writer = dbadapter.WriterID(1 + caller)
					writes[n] = put(fmt.Sprint(random.IntN(keys)), fmt.Sprint(caller, i, n), v)
				}
				outcomes, err := submit(context.Background(), e.namespace, e.hasher, writes)
				if err != nil {
					return err
				}
				for n := range outcomes {
					if r := outcomes[n].Result; r == dbadapter.Applied && outcomes[n].Held.Compare(writes[n].Record.Version) < 0 {
						return fmt.Errorf("a write that was applied leaves %v, and was %v", outcomes[n].Held, writes[n].Record.Version)
					}
				}
				all[caller] = append(all[caller], writes...)
			}
			return nil
		}
	}
	within(t, call(0), call(1))
	tw := newTwin(e.hasher)
	for _, writes := range all {
		tw.apply(writes)
	}
	e.checkSet(tw)
	e.checkLog(0)
	e.reopen()
	e.checkSet(tw)
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

// testCrowd does at once, over and over, all that takes a lock. It makes commits, reads
// under the lock that the observer takes, audits, and drops other namespaces.
func testCrowd(t *testing.T, h Harness) {
	const rounds = 200
	e := newEnv(t, h)
	ctx := context.Background()
	commit := func(writer int) func() error {
		return func() error {
			for i := range rounds {
				w := put(fmt.Sprint(writer, i%20), fmt.Sprint(i), at(i))
				if _, err := submit(ctx, e.namespace, e.hasher, []write{w}); err != nil {
					return fmt.Errorf("commit: %w", err)
				}
			}
			return nil
		}
	}
	read := func() error {
		for range rounds {
			s, err := e.namespace.Snapshot()
			if err != nil {
				return fmt.Errorf("open a snapshot: %w", err)
			}
			e.mu.Lock()
			if told := len(e.observed); s.Seq() > uint64(told) {
				err = fmt.Errorf("a snapshot as of change %d, of which the observer has been told %d", s.Seq(), told)
			}
			err = errors.Join(err, s.Close())
			e.mu.Unlock()
			if err != nil {
				return err
			}
		}
		return nil
	}
	audit := func() error { return auditAgain(e, rounds/10) }
	drop := func() error { return dropAgain(e, rounds/10) }
	compact := func() error { return e.store.Compact(ctx) }
	within(t, commit(0), commit(1), read, read, audit, drop, compact)
	within(t, e.store.Close)
}

// auditAgain opens snapshots and compares all that they say with their records.
func auditAgain(e *env, rounds int) error {
	for range rounds {
		s, err := e.namespace.Snapshot()
		if err != nil {
			return fmt.Errorf("open a snapshot: %w", err)
		}
		_, err = recount(context.Background(), e.hasher, s)
		if err := errors.Join(err, s.Close()); err != nil {
			return fmt.Errorf("audit: %w", err)
		}
	}
	return nil
}

// dropAgain creates another namespace, writes to it and drops it.
func dropAgain(e *env, rounds int) error {
	ctx, id := context.Background(), dbadapter.NamespaceID{2}
	for i := range rounds {
		other, err := e.store.Namespace(ctx, id, e.hasher, nil)
		if err != nil {
			return fmt.Errorf("create: %w", err)
		}
		_, err = submit(ctx, other, e.hasher, []write{put("k", "v", at(i))})
		if err := errors.Join(err, other.Close(), e.store.Drop(ctx, id)); err != nil {
			return fmt.Errorf("drop: %w", err)
		}
	}
	return nil
}

// recount reads all records of a snapshot and returns a twin of them, once it
// agrees with all else that the snapshot says.
func recount(ctx context.Context, hasher dbadapter.Hasher, s dbadapter.Snapshot) (*twin, error) {
	tw := newTwin(hasher)
	for r, err := range s.Scan(ctx, nil, nil) {
		if err != nil {
			return nil, err
		}
		tw.hold(r.Record)
	}
	return tw, tw.compare(s)
}
