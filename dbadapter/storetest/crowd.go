package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// testCrowd does at once, over and over, all that takes a lock. Callers write small batches
// and large ones to the same keys, without a pause: a store may decide one while the one
// before it lands. Others read, audit, save summaries, drop other namespaces, and compact.
// What was acknowledged is held, or a greater record is, and the log says why.
func testCrowd(t *testing.T, h Harness) {
	const keys, rounds = 800, 200
	e := newEnvWith(t, h, manyChanges, Weak(hasher(), 8))
	ctx := context.Background()
	var mu sync.Mutex
	var all []write
	write := func(caller, batches, least, most int, version func(second int) dbadapter.Version) func() error {
		return func() error {
			random := rand.New(rand.NewPCG(uint64(caller), 8))
			for range batches {
				writes := make([]write, least+random.IntN(most-least+1))
				for n := range writes {
					second := random.IntN(1000)
					writes[n] = put(fmt.Sprint(random.IntN(keys)), fmt.Sprint(second), version(second))
				}
				given := slices.Clone(writes)
				for n := range given {
					given[n].Record = given[n].Record.Clone()
				}
				outcomes, err := submit(ctx, e.namespace, e.hasher, given)
				if err != nil {
					return fmt.Errorf("write: %w", err)
				}
				for n, o := range outcomes {
					spoil(given[n].Record) // a caller uses its memory again
					if o.Result == dbadapter.Applied && o.Held.Compare(writes[n].Record.Version) < 0 {
						return fmt.Errorf("a write that was applied leaves %v, and was %v", o.Held, writes[n].Record.Version)
					}
				}
				mu.Lock()
				all = append(all, writes...)
				mu.Unlock()
			}
			return nil
		}
	}
	read := func() error {
		for range rounds {
			if err := readUnderLock(e); err != nil {
				return err
			}
		}
		return nil
	}
	audit := func() error { return auditAgain(e, rounds/10) }
	drop := func() error { return dropAgain(e, rounds/10) }
	compact := func() error { return e.store.Compact(ctx) }
	save := func(saver int) func() error { return func() error { return saveAgain(e, saver, rounds/20) } }
	// Nothing of one writer's conflicts: a store need not do more than write.
	within(t, write(1, 8, 640, 640, at), write(2, 8, 640, 640, at), read)
	other := func(second int) dbadapter.Version { return by(2, second) }
	within(t, write(3, rounds, 1, 4, at), write(4, rounds, 1, 4, other), read, read, audit, drop, compact, save(0), save(1), save(2))
	e.twin.apply(all) // last writer wins: the order does not matter but for the kept log
	e.checkSet()
	e.checkLog(manyChanges)
	e.reopen()
	e.checkSet()
	within(t, e.store.Close)
}

// readUnderLock opens a snapshot, and reads and closes it under the lock that the observer
// takes: it holds a commit exactly if the observer has been called for it.
func readUnderLock(e *env) error {
	e.mu.Lock()
	before := len(e.observed)
	e.mu.Unlock()
	s, err := e.namespace.Snapshot()
	if err != nil {
		return fmt.Errorf("open a snapshot: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if seq := s.Seq(); seq < uint64(before) || seq > uint64(len(e.observed)) {
		err = fmt.Errorf("a snapshot as of change %d; the observer was called for %d before it and for %d after it", seq, before, len(e.observed))
	}
	return errors.Join(err, s.Close())
}

// auditAgain opens snapshots and compares all that they say with their records, and these
// with what was observed.
func auditAgain(e *env, rounds int) error {
	for range rounds {
		s, err := e.namespace.Snapshot()
		if err != nil {
			return fmt.Errorf("open a snapshot: %w", err)
		}
		tw, err := recount(context.Background(), e.hasher, s)
		if err := errors.Join(err, s.Close()); err != nil {
			return fmt.Errorf("audit: %w", err)
		}
		e.mu.Lock()
		var sum dbadapter.Digest
		for _, c := range e.observed[:s.Seq()] {
			sum = sum.Add(c.Delta)
		}
		e.mu.Unlock()
		if sum != tw.digest() {
			return fmt.Errorf("the deltas up to change %d do not sum up to the digest of the snapshot", s.Seq())
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
