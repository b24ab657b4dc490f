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
			t.Errorf("%v has %d records, or another digest, not %d", span, p.Records(), want.Records)
		}
		p.Close()
		between(part)
	}
}

// The parts of a sync of a prefix read what has the prefix twice, however many they are.
func TestPartsReadTheirOwn(t *testing.T) {
	const records, parts = 3000, 64
	s := newSide(t)
	s.fill("p/", records)
	s.fill("q/", 2*records)
	ns := &counting{Namespace: s.ns}
	partly(t, s, ns, parts, func(int) {})
	if most := 2*records + 10*parts; ns.reads > most {
		t.Errorf("%d reads of %d records in %d parts, more than %d", ns.reads, records, parts, most)
	}

	// The notes go with two rests, and come again.
	s.live.Rest()
	if len(s.live.places) != 1 {
		t.Fatal("what was used is forgotten")
	}
	s.live.Rest()
	if len(s.live.places) != 0 {
		t.Fatal("what was not used is remembered")
	}
	ns.reads = 0
	partly(t, s, ns, parts, func(int) {})
	if ns.reads < records {
		t.Errorf("%d reads", ns.reads)
	}
}

// A prefix of which too much would have to be noted is read by the ranges of the
// namespace, which costs as much however many parts there are.
func TestPartsOfALargePrefix(t *testing.T) {
	const records, parts = 3000, 64
	s := newSide(t)
	s.fill("p/", records)
	s.fill("q/", records)
	s.live.mostPlaces = 200
	ns := &counting{Namespace: s.ns}
	partly(t, s, ns, parts, func(int) {})
	// The keys up to what may be noted, and for each part as many keys as its ranges
	// hold, then their pairs and their records.
	if most := 200 + 3*2*records + 20*parts; ns.reads > most {
		t.Errorf("%d reads of %d records in %d parts, more than %d", ns.reads, records, parts, most)
	}
	if len(s.live.places) != 1 || !s.live.places[0].tooMany || s.live.places[0].count != 0 {
		t.Error("places are noted")
	}
}

// What is written, moved and deleted between two parts is in those that follow,
// also where so much is written that the notes are given up, and where other prefixes
// push them out.
func TestPartsWhileMuchIsWritten(t *testing.T) {
	for name, most := range map[string]int{"noted": maxPlaces, "too much": 2500, "at once too much": 100} {
		t.Run(name, func(t *testing.T) {
			s := newSide(t)
			s.live.mostPlaces = most
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
				if part%3 == 0 {
					p, err := s.live.Prefix(t.Context(), s.ns, fmt.Append(nil, "q/", part), wire.Span{To: 1}, nil, nil)
					if err != nil {
						t.Fatal(err)
					}
					p.Close()
				}
			})
		})
	}
}

// A scan that fails leaves no notes behind.
func TestNotesOfAScanThatFails(t *testing.T) {
	s := newSide(t)
	s.fill("p/", 1000)
	ctx, cancel := context.WithCancel(t.Context())
	ticks := 0
	_, err := s.live.Prefix(ctx, s.ns, []byte("p/"), wire.Span{To: 100}, func() error {
		if ticks++; ticks == 3 {
			cancel()
		}
		return nil
	}, nil)
	if err == nil || len(s.live.places) != 0 {
		t.Errorf("%v, and %d notes", err, len(s.live.places))
	}
	partly(t, s, s.ns, 4, func(int) {})
}
