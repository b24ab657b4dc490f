package storetest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// check compares everything that the namespace says with the twin.
func (e *env) check() {
	e.Helper()
	if err := e.compare(); err != nil {
		e.Fatal(err)
	}
}

// compare returns what the namespace says otherwise than the twin.
func (e *env) compare() error {
	if err := e.compareSet(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range max(len(e.observed), len(e.twin.changes)) {
		if i >= min(len(e.observed), len(e.twin.changes)) || !sameChange(e.observed[i], e.twin.changes[i]) {
			return fmt.Errorf("change %d of %d is not the one of %d that is due: %+v, want %+v", i+1, len(e.observed), len(e.twin.changes), e.observed[i:min(i+1, len(e.observed))], e.twin.changes[i:min(i+1, len(e.twin.changes))])
		}
	}
	return e.compareKept()
}

// checkSet compares all but the kept log and the single changes.
func (e *env) checkSet() {
	e.Helper()
	if err := e.compareSet(); err != nil {
		e.Fatal(err)
	}
}

func (e *env) compareSet() error {
	s, err := e.namespace.Snapshot()
	if err != nil {
		return err
	}
	defer s.Close()
	if err := e.twin.compare(s); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var sum dbadapter.Sum
	for i, c := range e.observed {
		if c.Seq != uint64(i+1) {
			return fmt.Errorf("observed change %d has number %d", i+1, c.Seq)
		}
		sum = sum.Add(dbadapter.Sum{Records: uint64(c.Records), Digest: c.Delta})
	}
	if want := (dbadapter.Sum{Records: uint64(len(e.twin.records)), Digest: e.twin.digest()}); sum != want {
		return fmt.Errorf("the observed deltas sum up to %v, want %v", sum, want)
	}
	if got := e.namespace.Latest(); got != e.twin.latest {
		return fmt.Errorf("Latest is %v, want %v", got, e.twin.latest)
	}
	if got := e.namespace.Ceiling(); got != e.twin.ceiling() {
		return fmt.Errorf("Ceiling is %v, want %v", got, e.twin.ceiling())
	}
	if s.Seq() != uint64(len(e.observed)) {
		return fmt.Errorf("the snapshot is as of change %d, and %d were observed", s.Seq(), len(e.observed))
	}
	return nil
}

// compare reads a snapshot in every way.
func (t *twin) compare(s dbadapter.Snapshot) error {
	ctx := context.Background()
	want := t.sorted(nil, nil)
	got, err := t.scan(ctx, s, nil, nil)
	if err != nil {
		return err
	}
	if err := same("Scan", got, want); err != nil {
		return err
	}
	for _, r := range want {
		g, err := s.Get(r.Key)
		if err != nil {
			return fmt.Errorf("Get %q: %w", r.Key, err)
		}
		if err := same("Get", []dbadapter.Record{g}, []dbadapter.Record{r}); err != nil {
			return err
		}
	}
	buckets := t.buckets()
	if err := t.comparePairs(s, buckets); err != nil {
		return err
	}
	return t.compareBuckets(s, buckets)
}

func (t *twin) comparePairs(s dbadapter.Snapshot, buckets map[dbadapter.Index][]dbadapter.Record) error {
	sorted := slices.Sorted(maps.Keys(buckets))
	sums := make(map[dbadapter.Index]dbadapter.Checksum, len(sorted))
	for index, bucket := range buckets {
		sums[index] = t.checksum(bucket)
	}
	bounds := []dbadapter.Index{0, 1, maxIndex, maxIndex + 1, 1 << 63}
	if len(sorted) > 0 {
		middle := sorted[len(sorted)/2]
		bounds = append(bounds, middle, middle+1, sorted[len(sorted)-1])
	}
	for _, from := range bounds {
		for _, to := range bounds {
			var want []dbadapter.Index
			for _, index := range sorted {
				if index >= from && (to == 0 || index < to) {
					want = append(want, index)
				}
			}
			if err := pairsBetween(s, from, to, want, sums); err != nil {
				return fmt.Errorf("Pairs from %d to %d: %w", from, to, err)
			}
		}
	}
	return nil
}

// maxIndex is the greatest index.
const maxIndex = 1<<42 - 1

// pairsBetween compares the pairs of a range with those of the indices wanted, whose
// checksums are given.
func pairsBetween(s dbadapter.Snapshot, from, to dbadapter.Index, want []dbadapter.Index, sums map[dbadapter.Index]dbadapter.Checksum) error {
	for p, err := range s.Pairs(context.Background(), from, to) {
		switch {
		case err != nil:
			return err
		case len(want) == 0 || p.Index != want[0]:
			return fmt.Errorf("%d comes where %v are left", p.Index, want)
		case p.Checksum != sums[p.Index]:
			return fmt.Errorf("%d has checksum %d, want %d", p.Index, p.Checksum, sums[p.Index])
		}
		want = want[1:]
	}
	if len(want) > 0 {
		return fmt.Errorf("%v are missing", want)
	}
	return nil
}

// compareBuckets looks up all buckets, and some that are empty.
func (t *twin) compareBuckets(s dbadapter.Snapshot, buckets map[dbadapter.Index][]dbadapter.Record) error {
	indices := append(slices.Collect(maps.Keys(buckets)), 1, 2, 3, 1<<40, 1<<42+1, 1<<48+1, 1<<63+2)
	sums := make([]dbadapter.Checksum, len(indices))
	for i := range sums {
		sums[i] = 12345 // must be overwritten
	}
	if err := s.Lookup(indices, sums); err != nil {
		return fmt.Errorf("Lookup: %w", err)
	}
	for i, index := range indices {
		if want := t.checksum(buckets[index]); sums[i] != want {
			return fmt.Errorf("Lookup: %d has checksum %d, want %d", index, sums[i], want)
		}
	}
	slices.Sort(indices)
	indices = slices.Compact(indices) // a weak hasher has used some of the above
	together, err := s.Buckets(indices)
	if err != nil || len(together) != len(indices) {
		return fmt.Errorf("Buckets: %d of %d, %w", len(together), len(indices), err)
	}
	for i, index := range indices {
		held, err := s.Bucket(index)
		if err != nil {
			return fmt.Errorf("Bucket: %w", err)
		}
		for what, held := range map[string][]dbadapter.Hashed{"Bucket": held, "Buckets": together[i]} {
			records := make([]dbadapter.Record, len(held))
			for n := range held {
				if records[n], err = t.plain(held[n]); err != nil {
					return fmt.Errorf("%s: %w", what, err)
				}
			}
			if err := same(what, records, buckets[index]); err != nil {
				return err
			}
		}
	}
	return nil
}

// compareKept compares the kept log with the twin's.
func (e *env) compareKept() error {
	for range e.namespace.Kept(context.Background()) { // left early
		break
	}
	var want []dbadapter.Kept
	for _, why := range []dbadapter.Why{dbadapter.KeptConflict, dbadapter.KeptSetAside} {
		before := len(want)
		for _, k := range e.twin.kept {
			if k.Why == why {
				want = append(want, k)
			}
		}
		if got := e.namespace.KeptCount(why); got != len(want)-before {
			return fmt.Errorf("%d entries (%s) are counted, want %d", got, why, len(want)-before)
		}
	}
	for k, err := range e.namespace.Kept(context.Background()) {
		if err != nil {
			return fmt.Errorf("the kept log: %w", err)
		}
		if len(want) == 0 {
			return fmt.Errorf("the kept log goes on with entry %d", k.Seq)
		}
		w := want[0]
		want = want[1:]
		if k.Seq != w.Seq || k.Why != w.Why || k.By != w.By || time.Since(k.At).Abs() > time.Hour {
			return fmt.Errorf("the kept log has entry %d (%s) by %v at %v, want %d (%s) by %v", k.Seq, k.Why, k.By, k.At, w.Seq, w.Why, w.By)
		}
		if err := same("Kept", []dbadapter.Record{k.Record}, []dbadapter.Record{w.Record}); err != nil {
			return err
		}
	}
	if len(want) > 0 {
		return fmt.Errorf("the kept log ends before entry %d", want[0].Seq)
	}
	return nil
}

func same(what string, got, want []dbadapter.Record) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s gives %d records, want %d", what, len(got), len(want))
	}
	for i := range got {
		g, w := got[i], want[i]
		if !bytes.Equal(g.Key, w.Key) || !bytes.Equal(g.Value, w.Value) || g.Version != w.Version ||
			g.Deleted != w.Deleted || !bytes.Equal(g.Signature, w.Signature) || g.Signer != w.Signer ||
			g.Expires != w.Expires || !slices.Equal(g.Replaces, w.Replaces) {
			return fmt.Errorf("%s: record %d is %+v, want %+v", what, i, g, w)
		}
	}
	return nil
}
