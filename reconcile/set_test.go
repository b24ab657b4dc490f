package reconcile

import (
	"bytes"
	"iter"
	"maps"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/internal/rangesum"
)

// set is the plainest replica: a map of buckets, sketched as it is filled. Package replica
// has the ones that read a store.
type set struct {
	keys    Keys
	buckets map[dbadapter.Index][]dbadapter.Hashed // by key
	sums    map[dbadapter.Index]dbadapter.Checksum
	ranges  rangesum.Table
	sketch  *rateless.Sketch
}

var _ Replica = (*set)(nil)

func newSet(keys Keys, cells int) *set {
	return &set{
		keys: keys, buckets: map[dbadapter.Index][]dbadapter.Hashed{}, sums: map[dbadapter.Index]dbadapter.Checksum{},
		sketch: rateless.NewSketch(keys.Cells, cells),
	}
}

// held is where a record of the key is in its bucket, or belongs.
func (s *set) held(i dbadapter.Index, key []byte) (at int, is bool) {
	return slices.BinarySearchFunc(s.buckets[i], key, func(h dbadapter.Hashed, key []byte) int { return bytes.Compare(h.Key, key) })
}

// put takes a record in, in the place of the one of its key.
func (s *set) put(r dbadapter.Hashed) {
	bucket := s.buckets[r.Index]
	if at, is := s.held(r.Index, r.Key); is {
		s.ranges.Sub(r.Index, dbadapter.Sum{Records: 1, Digest: bucket[at].Digest})
		bucket[at] = r
	} else {
		bucket = slices.Insert(bucket, at, r)
	}
	s.ranges.Add(r.Index, dbadapter.Sum{Records: 1, Digest: r.Digest})
	s.fill(r.Index, bucket)
}

// fill makes the records those under the index.
func (s *set) fill(i dbadapter.Index, bucket []dbadapter.Hashed) {
	sum := dbadapter.Checksum(0)
	if len(bucket) > 0 {
		var b dbadapter.Bucket
		for n := range bucket {
			b.Add(&bucket[n])
		}
		sum = b.Pair(s.keys.Hasher).Checksum
	}
	s.sketch.Replace(coded.Pair(i, s.sums[i]), coded.Pair(i, sum))
	s.buckets[i], s.sums[i] = bucket, sum
}

func (s *set) Apply(records []dbadapter.Record) ([]Verdict, error) {
	verdicts := make([]Verdict, len(records))
	for n, r := range hashed(s.keys.Hasher, records...) {
		verdicts[n].Result = dbadapter.Applied
		if at, is := s.held(r.Index, r.Key); is && r.Compare(&s.buckets[r.Index][at].Record) <= 0 {
			verdicts[n].Result = dbadapter.Dominated
			continue
		}
		r.Record = r.Record.Clone()
		s.put(r)
	}
	return verdicts, nil
}

// forget undoes the Apply of a record that was not held before.
func (s *set) forget(r *dbadapter.Record) {
	h := hashed(s.keys.Hasher, *r)[0]
	at, _ := s.held(h.Index, h.Key)
	s.ranges.Sub(h.Index, dbadapter.Sum{Records: 1, Digest: h.Digest})
	s.fill(h.Index, slices.Delete(s.buckets[h.Index], at, at+1))
}

func (s *set) Close() error                                  { return nil }
func (s *set) Sum() dbadapter.Sum                            { return s.ranges.Total() }
func (s *set) Ranges(from, to dbadapter.Range) dbadapter.Sum { return s.ranges.Of(from, to) }
func (s *set) Decoded()                                      {}
func (s *set) Estimator() rateless.Estimator                 { return s.sketch.Estimator() }

// extend makes the sketch anew, of so many cells.
func (s *set) extend(cells int) {
	s.sketch = rateless.NewSketch(s.keys.Cells, cells)
	for i, sum := range s.sums {
		s.sketch.Add(coded.Pair(i, sum))
	}
}

func (s *set) Cells(from, to int) ([]rateless.Cell, error) {
	if to <= s.sketch.Len() {
		return s.sketch.Cells(from, to)
	}
	w := rateless.NewWindow(s.keys.Cells, from, to)
	for i, sum := range s.sums {
		w.Add(coded.Pair(i, sum))
	}
	return w.Cells(from, to)
}

func (s *set) Buckets(indices []dbadapter.Index) ([][]dbadapter.Hashed, error) {
	read := make([][]dbadapter.Hashed, len(indices))
	for n, i := range indices {
		read[n] = slices.Clone(s.buckets[i])
	}
	return read, nil
}

func (s *set) Lookup(indices []dbadapter.Index, sums []dbadapter.Checksum) error {
	for n, i := range indices {
		sums[n] = s.sums[i]
	}
	return nil
}

// List is what the ranges hold.
func (s *set) List(ranges []dbadapter.Range) iter.Seq2[Listed, error] {
	return func(yield func(Listed, error) bool) {
		for _, i := range slices.Sorted(maps.Keys(s.buckets)) {
			b := Listed{Index: i}
			for _, r := range s.buckets[i] {
				b.Sum = b.Sum.Add(dbadapter.Sum{Records: 1, Digest: r.Digest})
			}
			if b.Sum.Records > 0 && slices.Contains(ranges, dbadapter.RangeOf(i)) && !yield(b, nil) {
				return
			}
		}
	}
}
func (s *set) Repair(r dbadapter.Range, sum dbadapter.Sum) { s.ranges.Set(r, sum) }

func (s *set) All() iter.Seq2[dbadapter.Hashed, error] {
	return func(yield func(dbadapter.Hashed, error) bool) {
		all := slices.Concat(slices.Collect(maps.Values(s.buckets))...)
		slices.SortFunc(all, func(a, b dbadapter.Hashed) int { return bytes.Compare(a.Key, b.Key) })
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}
