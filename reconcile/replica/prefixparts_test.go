package replica

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// counting is a namespace that counts what is read of it.
type counting struct {
	dbadapter.Namespace
	reads int // records, pairs, and buckets that are empty
}

type countingSnapshot struct {
	dbadapter.Snapshot
	ns *counting
}

func (c *counting) Snapshot() (dbadapter.Snapshot, error) {
	snap, err := c.Namespace.Snapshot()
	return countingSnapshot{snap, c}, err
}

func (s countingSnapshot) Scan(ctx context.Context, prefix, after []byte) iter.Seq2[dbadapter.Hashed, error] {
	return counted(s.Snapshot.Scan(ctx, prefix, after), &s.ns.reads)
}

func (s countingSnapshot) Pairs(ctx context.Context, from, to dbadapter.Index) iter.Seq2[dbadapter.Pair, error] {
	return counted(s.Snapshot.Pairs(ctx, from, to), &s.ns.reads)
}

func counted[T any](items iter.Seq2[T, error], n *int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for item, err := range items {
			if *n++; !yield(item, err) {
				return
			}
		}
	}
}

func (s countingSnapshot) Buckets(indices []dbadapter.Index) ([][]dbadapter.Hashed, error) {
	read, err := s.Snapshot.Buckets(indices)
	for _, bucket := range read {
		s.ns.reads += max(1, len(bucket))
	}
	return read, err
}

// partly opens the replicas of all parts of a prefix, one after the other, and calls
// between after each. It checks that they make up the whole.
func partly(t *testing.T, s *side, ns dbadapter.Namespace, parts int, between func(part int)) {
	t.Helper()
	const each = dbadapter.Ranges
	for part := range parts {
		span := wire.Span{From: dbadapter.Range(part * each / parts), To: dbadapter.Range((part + 1) * each / parts)}
		alone := newSide(t)
		all, err := s.ns.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range all.Scan(t.Context(), []byte("p/"), nil) {
			if err != nil {
				t.Fatal(err)
			}
			if span.Holds(r.Index) {
				alone.put(r.Record)
			}
		}
		all.Close()
		p, err := s.live.Prefix(t.Context(), ns, []byte("p/"), span, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.put(record("p/after the snapshot", fmt.Sprint(part), at(time.Duration(part)*time.Second)))
		if want := alone.live.ranges.Total(); p.ranges.Total() != want {
			t.Errorf("%v has %d records, or another digest, not %d", span, p.Sum().Records, want.Records)
		}
		p.Close()
		between(part)
	}
}

// The parts of a sync of a prefix read what has the prefix each, or what the namespace holds in
// their ranges: many of them cost no more than the namespace, however many they are.
func TestPartsReadLittle(t *testing.T) {
	const records = 3000
	for _, parts := range []int{2, 64} {
		s := newSide(t)
		s.fill("p/", records)
		s.fill("q/", records)
		ns := &counting{Namespace: s.ns}
		partly(t, s, ns, parts, func(int) {})
		// Each part reads as many keys as its ranges hold at most, then their pairs and their records.
		if most := min(2*parts, 3*2) * records; ns.reads > most+20*parts {
			t.Errorf("%d reads of %d records in %d parts, more than %d", ns.reads, records, parts, most)
		}
	}
}

// What is written, moved and deleted between two parts is in those that follow.
func TestPartsWhileMuchIsWritten(t *testing.T) {
	s := newSide(t)
	rng := seeded(t, 12)
	s.fill("p/", 2000)
	s.fill("q/", 500)
	partly(t, s, s.ns, 16, func(part int) {
		for range 100 {
			key := fmt.Sprint("p/", rng.IntN(3000))
			if rng.IntN(4) == 0 {
				s.take(dbadapter.Collect, key)
			} else {
				s.put(record(key, fmt.Sprint(part), at(time.Hour+time.Duration(part)*time.Minute)))
			}
		}
	})
}
