package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// twin is a namespace done plainly: a map of records, and everything else
// computed from it anew.
type twin struct {
	hasher  dbadapter.Hasher
	records map[string]dbadapter.Record
	latest  dbadapter.Timestamp
	raised  dbadapter.Timestamp
	kept    []dbadapter.Kept // At is not set
	keptSeq uint64
}

func newTwin(h dbadapter.Hasher) *twin {
	return &twin{hasher: h, records: make(map[string]dbadapter.Record)}
}

func (t *twin) clone() *twin {
	c := *t
	c.records, c.kept = maps.Clone(t.records), slices.Clone(t.kept)
	return &c
}

// keep adds an entry to the kept log.
func (t *twin) keep(why dbadapter.Why, r dbadapter.Record, by dbadapter.Version) {
	t.keptSeq++
	t.kept = append(t.kept, dbadapter.Kept{Seq: t.keptSeq, Why: why, Record: r, By: by})
}

func (t *twin) ceiling() dbadapter.Timestamp { return max(t.latest, t.raised) }

// lower does what Lower must do.
func (t *twin) lower(to dbadapter.Timestamp) {
	t.latest, t.raised = min(t.latest, to), min(t.raised, to)
}

func (t *twin) forget(seqs []uint64) {
	t.kept = slices.DeleteFunc(t.kept, func(k dbadapter.Kept) bool { return slices.Contains(seqs, k.Seq) })
}

// apply does what Apply must do.
func (t *twin) apply(writes []write) (outcomes []dbadapter.Outcome, conflict bool) {
	before := t.clone()
	outcomes = make([]dbadapter.Outcome, len(writes))
	for i, w := range writes {
		held, ok := t.records[string(w.Record.Key)]
		switch {
		case w.If != nil && (!ok && *w.If != dbadapter.Version{} || ok && *w.If != held.Version || ok && *w.If == dbadapter.Version{}):
			outcomes[i].Result = dbadapter.Conflict
			conflict = true
		case w.Action.Removes() && !ok:
			outcomes[i].Result = dbadapter.Same
		case w.Action.Removes() && rank(w.Record) != rank(held):
			outcomes[i].Result = dbadapter.Dominated
		case w.Action.Removes():
			outcomes[i].Result = dbadapter.Applied
			delete(t.records, string(w.Record.Key))
			if w.Action == dbadapter.SetAside {
				t.keep(dbadapter.KeptSetAside, held, dbadapter.Version{})
			}
		case (!ok || rank(w.Record) > rank(held) || w.Action == dbadapter.Replace && rank(w.Record) < rank(held)) && t.full(w.Record):
			outcomes[i].Result = dbadapter.Full
		case !ok || rank(w.Record) > rank(held) || w.Action == dbadapter.Replace && rank(w.Record) < rank(held):
			outcomes[i].Result = dbadapter.Applied
			if ok && w.Action == dbadapter.Put && held.Version.Writer != 0 && w.Record.Version.Writer != 0 &&
				!w.Record.Supersedes(held.Version) && !w.Record.SameContent(&held) && !past(held, w.Past) {
				t.keep(dbadapter.KeptConflict, held, w.Record.Version)
			}
			t.records[string(w.Record.Key)] = w.Record.Clone()
			t.latest = max(t.latest, w.Record.Version.Clock)
		case rank(w.Record) == rank(held):
			outcomes[i].Result = dbadapter.Same
		default:
			outcomes[i].Result = dbadapter.Dominated
		}
	}
	if conflict {
		*t = *before
	}
	for i, w := range writes {
		if conflict && outcomes[i].Result != dbadapter.Conflict {
			outcomes[i].Result = dbadapter.Skipped
		}
		outcomes[i].Held = t.records[string(w.Record.Key)].Version
	}
	return outcomes, conflict
}

// past reports whether a collection up to a time may take the record.
func past(r dbadapter.Record, to dbadapter.Timestamp) bool {
	return (r.Deleted || r.Expires != 0) && r.Version.Clock <= to && r.Expires <= to
}

// greatest is the greatest clock that is held.
func (t *twin) greatest() (clock dbadapter.Timestamp) {
	for _, r := range t.records {
		clock = max(clock, r.Version.Clock)
	}
	return clock
}

// rank sorts as records win.
func rank(r dbadapter.Record) string {
	content := sha256.Sum256(slices.Concat([]byte{map[bool]byte{true: 1}[r.Deleted]}, r.Value))
	b := binary.BigEndian.AppendUint64(content[:], uint64(r.Expires))
	for _, p := range r.Replaces {
		b = binary.BigEndian.AppendUint64(b, uint64(p.Writer))
		b = binary.BigEndian.AppendUint64(b, uint64(p.Clock))
	}
	return r.Version.String() + string(b)
}

// sorted are the records with a prefix, after a key, by key.
func (t *twin) sorted(prefix, after []byte) []dbadapter.Record {
	var rs []dbadapter.Record
	for _, key := range slices.Sorted(maps.Keys(t.records)) {
		if bytes.HasPrefix([]byte(key), prefix) && (after == nil || key > string(after)) {
			rs = append(rs, t.records[key])
		}
	}
	return rs
}

// buckets are the records by index, by key.
func (t *twin) buckets() map[dbadapter.Index][]dbadapter.Record {
	m := make(map[dbadapter.Index][]dbadapter.Record)
	for _, r := range t.sorted(nil, nil) {
		i := t.hasher.Index(r.Key)
		m[i] = append(m[i], r)
	}
	return m
}

// plain is a record as a snapshot returned it, once its hashes are found right.
func (t *twin) plain(r dbadapter.Hashed) (dbadapter.Record, error) {
	if r.Index != t.hasher.Index(r.Key) || r.Digest != t.hasher.Digest(&r.Record) {
		return r.Record, fmt.Errorf("the record %q came with another one's hashes", r.Key)
	}
	return r.Record, nil
}

// scan is all that Scan yields.
func (t *twin) scan(ctx context.Context, s dbadapter.Snapshot, prefix, after []byte) ([]dbadapter.Record, error) {
	var all []dbadapter.Record
	for h, err := range s.Scan(ctx, prefix, after) {
		if err != nil {
			return nil, fmt.Errorf("Scan: %w", err)
		}
		r, err := t.plain(h)
		if err != nil {
			return nil, fmt.Errorf("Scan: %w", err)
		}
		all = append(all, r)
	}
	return all, nil
}

func (t *twin) checksum(bucket []dbadapter.Record) dbadapter.Checksum {
	var latest dbadapter.Timestamp
	var digests []dbadapter.Digest
	for i := range bucket {
		latest = max(latest, bucket[i].Version.Clock)
		digests = append(digests, t.hasher.Digest(&bucket[i]))
	}
	return t.hasher.Checksum(latest, digests)
}

func (t *twin) digest() (d dbadapter.Digest) {
	for _, r := range t.records {
		d = d.Add(t.hasher.Digest(&r))
	}
	return d
}

// check compares everything that the namespace says with the twin.
func (e *env) check(t *twin) {
	e.Helper()
	e.checkSet(t)
	if err := e.checkKept(t); err != nil {
		e.Fatal(err)
	}
}

// checkSet compares all but the kept log.
func (e *env) checkSet(t *twin) {
	e.Helper()
	s := e.snapshot()
	defer s.Close()
	if err := t.compare(s); err != nil {
		e.Fatal(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.digest != t.digest() || e.records != len(t.records) {
		e.Fatalf("the observed deltas sum up to %v in %d records, want %v in %d", e.digest, e.records, t.digest(), len(t.records))
	}
	if got := e.namespace.Latest(); got != t.latest {
		e.Fatalf("Latest is %v, want %v", got, t.latest)
	}
	if got := e.namespace.Ceiling(); got != t.ceiling() {
		e.Fatalf("Ceiling is %v, want %v", got, t.ceiling())
	}
	if s.Seq() != uint64(len(e.observed)) {
		e.Fatalf("the snapshot is as of change %d, and %d were observed", s.Seq(), len(e.observed))
	}
	for i, c := range e.observed {
		if c.Seq != uint64(i+1) {
			e.Fatalf("observed change %d has number %d", i+1, c.Seq)
		}
	}
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
			if err := t.pairsBetween(s, from, to, want, buckets); err != nil {
				return fmt.Errorf("Pairs from %d to %d: %w", from, to, err)
			}
		}
	}
	return nil
}

// maxIndex is the greatest index.
const maxIndex = 1<<48 - 1

func (t *twin) pairsBetween(s dbadapter.Snapshot, from, to dbadapter.Index, want []dbadapter.Index, buckets map[dbadapter.Index][]dbadapter.Record) error {
	for p, err := range s.Pairs(context.Background(), from, to) {
		switch {
		case err != nil:
			return err
		case len(want) == 0 || p.Index != want[0]:
			return fmt.Errorf("%d comes where %v are left", p.Index, want)
		case p.Checksum != t.checksum(buckets[p.Index]):
			return fmt.Errorf("%d has checksum %d, want %d", p.Index, p.Checksum, t.checksum(buckets[p.Index]))
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
	indices := append(slices.Collect(maps.Keys(buckets)), 1, 2, 3, 1<<40, 1<<48+1, 1<<63+2)
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

// checkKept compares the kept log with the twin's.
func (e *env) checkKept(t *twin) error {
	var want []dbadapter.Kept
	for _, why := range []dbadapter.Why{dbadapter.KeptConflict, dbadapter.KeptSetAside} {
		before := len(want)
		for _, k := range t.kept {
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
