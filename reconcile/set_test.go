package reconcile

import (
	"iter"
	"maps"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/internal/rangesum"
)

// set is the plainest replica: a map, sketched as it is filled. It serves the
// tests that count cells and round trips over thousands of syncs.
type set struct {
	keys    Keys
	records map[string]dbadapter.Record
	places  map[dbadapter.Index]string
	ranges  rangesum.Table
	sketch  *rateless.Sketch
}

var _ Replica = (*set)(nil)

func newSet(keys Keys, cells int) *set {
	return &set{
		keys:    keys,
		records: map[string]dbadapter.Record{},
		places:  map[dbadapter.Index]string{},
		sketch:  rateless.NewSketch(keys.Cells, cells),
	}
}

func (s *set) pair(r *dbadapter.Record) (dbadapter.Pair, dbadapter.Digest) {
	d := s.keys.Hasher.Digest(r)
	index := s.keys.Hasher.Index(r.Key)
	return dbadapter.Pair{Index: index, Checksum: s.keys.Hasher.Checksum(index, r.Version.Clock, []dbadapter.Digest{d})}, d
}

func (s *set) Apply(records []dbadapter.Record) ([]Verdict, error) {
	verdicts := make([]Verdict, len(records))
	for n, r := range records {
		r := r.Clone()
		p, d := s.pair(&r)
		old, held := s.records[string(r.Key)]
		verdicts[n].Result = dbadapter.Applied
		if held {
			if c := r.Compare(&old); c <= 0 {
				verdicts[n].Result = dbadapter.Dominated
				continue
			}
			q, e := s.pair(&old)
			s.sketch.Remove(coded.Pair(q.Index, q.Checksum))
			s.ranges.Sub(q.Index, dbadapter.Sum{Records: 1, Digest: e})
		}
		s.sketch.Add(coded.Pair(p.Index, p.Checksum))
		s.ranges.Add(p.Index, dbadapter.Sum{Records: 1, Digest: d})
		s.records[string(r.Key)] = r
		s.places[p.Index] = string(r.Key)
	}
	return verdicts, nil
}

// forget undoes the Apply of a record that was not held before.
func (s *set) forget(r *dbadapter.Record) {
	p, d := s.pair(r)
	s.sketch.Remove(coded.Pair(p.Index, p.Checksum))
	s.ranges.Sub(p.Index, dbadapter.Sum{Records: 1, Digest: d})
	delete(s.records, string(r.Key))
	delete(s.places, p.Index)
}

func (s *set) Records() uint64                               { return uint64(len(s.records)) }
func (s *set) Digest() dbadapter.Digest                      { return s.ranges.Total().Digest }
func (s *set) Ranges(from, to dbadapter.Range) dbadapter.Sum { return s.ranges.Of(from, to) }
func (s *set) Cells(from, to int) ([]rateless.Cell, error)   { return s.sketch.Cells(from, to) }
func (s *set) Decoded()                                      {}
func (s *set) Estimator() rateless.Estimator                 { return s.sketch.Estimator() }
func (s *set) Buckets(indices []dbadapter.Index) ([][]dbadapter.Hashed, error) {
	read := make([][]dbadapter.Hashed, len(indices))
	for n, i := range indices {
		if key, ok := s.places[i]; ok {
			read[n] = hashed(s.keys.Hasher, s.records[key])
		}
	}
	return read, nil
}

func (s *set) Lookup(indices []dbadapter.Index, sums []dbadapter.Checksum) error {
	for n, i := range indices {
		sums[n] = 0
		if key, ok := s.places[i]; ok {
			r := s.records[key]
			p, _ := s.pair(&r)
			sums[n] = p.Checksum
		}
	}
	return nil
}

func (s *set) List(ranges []dbadapter.Range) iter.Seq2[Listed, error] {
	return listed(s.All(nil), ranges)
}
func (s *set) Repair(r dbadapter.Range, sum dbadapter.Sum) { s.ranges.Set(r, sum) }

// listed is what a scan has in some ranges.
func listed(all iter.Seq2[dbadapter.Hashed, error], ranges []dbadapter.Range) iter.Seq2[Listed, error] {
	return func(yield func(Listed, error) bool) {
		sums := map[dbadapter.Index]dbadapter.Sum{}
		for r, err := range all {
			if err != nil {
				yield(Listed{}, err)
				return
			}
			if slices.Contains(ranges, dbadapter.RangeOf(r.Index)) {
				sums[r.Index] = sums[r.Index].Add(dbadapter.Sum{Records: 1, Digest: r.Digest})
			}
		}
		for _, i := range slices.Sorted(maps.Keys(sums)) {
			if !yield(Listed{i, sums[i]}, nil) {
				return
			}
		}
	}
}

func (s *set) All(behind []byte) iter.Seq2[dbadapter.Hashed, error] {
	return func(yield func(dbadapter.Hashed, error) bool) {
		for _, key := range slices.Sorted(maps.Keys(s.records)) {
			if key <= string(behind) {
				continue
			}
			if !yield(hashed(s.keys.Hasher, s.records[key])[0], nil) {
				return
			}
		}
	}
}
