package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
)

// twin is a namespace done plainly: a map of records, and everything else
// computed from it anew.
type twin struct {
	hasher  dbadapter.Hasher
	records map[string]dbadapter.Record
	keys    map[dbadapter.Index]int // of the records, under each index
	latest  dbadapter.Timestamp
	raised  dbadapter.Timestamp
	kept    []dbadapter.Kept // At is not set
	keptSeq uint64
	changes []dbadapter.Change // all of the log
}

func newTwin(h dbadapter.Hasher) *twin {
	return &twin{hasher: h, records: make(map[string]dbadapter.Record), keys: make(map[dbadapter.Index]int)}
}

func (t *twin) clone() *twin {
	c := *t
	c.records, c.keys, c.kept = maps.Clone(t.records), maps.Clone(t.keys), slices.Clone(t.kept)
	return &c
}

// hold takes a record in the place of that of its key.
func (t *twin) hold(r dbadapter.Record) {
	if _, ok := t.records[string(r.Key)]; !ok {
		t.keys[t.hasher.Index(r.Key)]++
	}
	t.records[string(r.Key)] = r
}

// remove takes out the record of a key that is held.
func (t *twin) remove(key []byte) {
	delete(t.records, string(key))
	t.keys[t.hasher.Index(key)]--
}

// keep adds an entry to the kept log.
func (t *twin) keep(why dbadapter.Why, r dbadapter.Record, by dbadapter.Version) {
	t.keptSeq++
	t.kept = append(t.kept, dbadapter.Kept{Seq: t.keptSeq, Why: why, Record: r, By: by})
}

// trim takes the oldest conflicts beyond the bounds out of the kept log.
func (t *twin) trim() {
	number, bytes := 0, 0
	var left []dbadapter.Kept
	for _, k := range slices.Backward(t.kept) {
		if k.Why == dbadapter.KeptConflict {
			number, bytes = number+1, bytes+len(k.Record.Key)+len(k.Record.Value)
			if number > dbadapter.MaxConflicts || bytes > dbadapter.MaxConflictBytes {
				continue
			}
		}
		left = append(left, k)
	}
	slices.Reverse(left)
	t.kept = left
}

// change adds the changes of a commit to the log. touched are the indices of its writes,
// by their first one.
func (t *twin) change(before *twin, touched []dbadapter.Index) {
	digests := func(bucket []dbadapter.Record) map[string]dbadapter.Digest {
		m := map[string]dbadapter.Digest{}
		for i := range bucket {
			m[string(bucket[i].Key)] = t.hasher.Digest(&bucket[i])
		}
		return m
	}
	was, is := before.buckets(), t.buckets()
	for _, index := range touched {
		c := dbadapter.Change{
			Seq: uint64(len(t.changes)) + 1, Index: index,
			Old: t.checksum(was[index]), New: t.checksum(is[index]), Records: len(is[index]) - len(was[index]),
		}
		old, held := digests(was[index]), digests(is[index])
		for key, d := range old {
			c.Delta = c.Delta.Sub(d)
			if held[key] != d {
				c.Keys = append(c.Keys, []byte(key))
			} else {
				c.Shared = true
			}
		}
		for key, d := range held {
			c.Delta = c.Delta.Add(d)
			if _, ok := old[key]; !ok {
				c.Keys = append(c.Keys, []byte(key))
			}
		}
		slices.SortFunc(c.Keys, bytes.Compare)
		t.changes = append(t.changes, c)
	}
}

func (t *twin) ceiling() dbadapter.Timestamp { return max(t.latest, t.raised) }

// lower does what Lower must do.
func (t *twin) lower(to dbadapter.Timestamp) {
	t.latest, t.raised = min(t.latest, to), min(t.raised, to)
}

func (t *twin) forget(seqs []uint64) {
	t.kept = slices.DeleteFunc(t.kept, func(k dbadapter.Kept) bool { return slices.Contains(seqs, k.Seq) })
}

// apply does what Apply must do. stopped is the result that has left out the whole batch;
// 0 for none.
func (t *twin) apply(writes []write) (outcomes []dbadapter.Outcome, stopped dbadapter.Result) {
	before := t.clone()
	outcomes = make([]dbadapter.Outcome, len(writes))
	var touched []dbadapter.Index
	for i, w := range writes {
		held, ok := t.records[string(w.Record.Key)]
		switch {
		case w.If != nil && (!ok && *w.If != dbadapter.Version{} || ok && *w.If != held.Version || ok && *w.If == dbadapter.Version{}):
			outcomes[i].Result = dbadapter.Conflict
		case w.Action.Removes() && !ok:
			outcomes[i].Result = dbadapter.Same
		case w.Action.Removes() && rank(w.Record) != rank(held):
			outcomes[i].Result = dbadapter.Dominated
		case w.Action.Removes():
			outcomes[i].Result = dbadapter.Applied
			t.remove(w.Record.Key)
			if w.Action == dbadapter.SetAside {
				t.keep(dbadapter.KeptSetAside, held, dbadapter.Version{})
			}
		case (!ok || rank(w.Record) > rank(held) || w.Action == dbadapter.Replace && rank(w.Record) < rank(held)) && t.full(w.Record):
			outcomes[i].Result = dbadapter.Full
		case !ok || rank(w.Record) > rank(held) || w.Action == dbadapter.Replace && rank(w.Record) < rank(held):
			outcomes[i].Result = dbadapter.Applied
			if ok && w.Action == dbadapter.Put && w.Record.Version.Writer != 0 && held.Version.Writer != 0 &&
				!w.Record.Supersedes(held.Version) && !w.Record.SameContent(&held) && !past(held, w.Past) {
				t.keep(dbadapter.KeptConflict, held, w.Record.Version)
			}
			t.hold(w.Record.Clone())
			t.latest = max(t.latest, w.Record.Version.Clock)
		case rank(w.Record) == rank(held):
			outcomes[i].Result = dbadapter.Same
		default:
			outcomes[i].Result = dbadapter.Dominated
		}
		if outcomes[i].Result == dbadapter.Applied {
			touched = append(touched, t.hasher.Index(w.Record.Key))
		}
		if stopped == 0 && w.stopsAt(outcomes[i].Result) {
			stopped = outcomes[i].Result
		}
	}
	if stopped != 0 {
		*t = *before
	} else if len(touched) > 0 {
		t.change(before, firsts(touched))
		t.trim()
	}
	for i, w := range writes {
		if stopped != 0 && !w.stopsAt(outcomes[i].Result) {
			outcomes[i].Result = dbadapter.Skipped
		}
		outcomes[i].Held = t.records[string(w.Record.Key)].Version
	}
	return outcomes, stopped
}

// firsts are the indices, each where it comes first.
func firsts(all []dbadapter.Index) (some []dbadapter.Index) {
	seen := map[dbadapter.Index]bool{}
	for _, index := range all {
		if !seen[index] {
			seen[index], some = true, append(some, index)
		}
	}
	return some
}

// full reports whether the index of a record has no room for it.
func (t *twin) full(r dbadapter.Record) bool {
	if t.keys[t.hasher.Index(r.Key)] < dbadapter.MaxBucket {
		return false
	}
	others, alive := 0, 0
	for _, o := range t.records {
		if t.hasher.Index(o.Key) == t.hasher.Index(r.Key) && string(o.Key) != string(r.Key) {
			if others++; !o.Deleted {
				alive++
			}
		}
	}
	held, ok := t.records[string(r.Key)]
	return !ok && others >= dbadapter.MaxBucketKeys || !r.Deleted && (!ok || held.Deleted) && alive >= dbadapter.MaxBucket
}

// stopsAt reports whether a write with that result leaves out the whole batch.
func (w *write) stopsAt(r dbadapter.Result) bool {
	return r == dbadapter.Conflict || w.Must && (r == dbadapter.Full || r == dbadapter.Dominated)
}

// stoppedBy is the error of a batch that such a result has stopped; nil for none.
func stoppedBy(r dbadapter.Result) error {
	switch r {
	case 0:
		return nil
	case dbadapter.Full:
		return dbadapter.ErrLimit
	}
	return dbadapter.ErrConflict
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
	if len(bucket) == 0 {
		return 0
	}
	var latest dbadapter.Timestamp
	var digests []dbadapter.Digest
	for i := range bucket {
		latest = max(latest, bucket[i].Version.Clock)
		digests = append(digests, t.hasher.Digest(&bucket[i]))
	}
	return t.hasher.Checksum(t.hasher.Index(bucket[0].Key), latest, digests)
}

func (t *twin) digest() (d dbadapter.Digest) {
	for _, r := range t.records {
		d = d.Add(t.hasher.Digest(&r))
	}
	return d
}
