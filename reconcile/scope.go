package reconcile

import (
	"context"
	"iter"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
)

// Scope is a Replica of the keys that begin with a prefix, sketched by a scan:
// it costs time and memory in proportion to the records in the scope.
type Scope struct {
	ctx     context.Context // the sync's; a Replica's methods are steps of it
	prefix  []byte
	key     rateless.Key
	hasher  dbadapter.Hasher
	snap    dbadapter.Snapshot
	door    Door
	digest  dbadapter.Digest
	records uint64
	sums    map[dbadapter.Index]dbadapter.Checksum
	sketch  *rateless.Sketch
}

var _ Replica = (*Scope)(nil)

// NewScope scans the records with that prefix. The snapshot becomes the
// scope's, also when an error is returned.
func NewScope(ctx context.Context, snap dbadapter.Snapshot, prefix []byte, key rateless.Key, hasher dbadapter.Hasher, door Door) (*Scope, error) {
	s := &Scope{ctx: ctx, prefix: prefix, key: key, hasher: hasher, snap: snap, door: door, sums: map[dbadapter.Index]dbadapter.Checksum{}}
	if err := s.scan(); err != nil {
		snap.Close()
		return nil, err
	}
	return s, nil
}

func (s *Scope) scan() error {
	type bucket struct {
		latest  dbadapter.Timestamp
		digests []dbadapter.Digest
	}
	shared := map[dbadapter.Index]*bucket{} // the records come by key, as a checksum wants them
	for r, err := range s.All() {
		if err != nil {
			return err
		}
		i := s.hasher.Index(r.Key)
		b := shared[i]
		if b == nil {
			b = &bucket{}
			shared[i] = b
		}
		d := s.hasher.Digest(&r)
		b.latest = max(b.latest, r.Version.Clock)
		b.digests = append(b.digests, d)
		s.digest = s.digest.Add(d)
		s.records++
	}
	for i, b := range shared {
		s.sums[i] = s.hasher.Checksum(b.latest, b.digests)
	}
	return s.extend(KeptCells(s.records))
}

// extend sketches the scope in that many cells.
func (s *Scope) extend(cells int) error {
	sketch := rateless.NewSketch(s.key, cells)
	if err := sketch.AddAll(s.pairs); err != nil {
		return err
	}
	s.sketch = sketch
	return nil
}

// pairs yields the scope's pairs until the sync is cancelled.
func (s *Scope) pairs(yield func(rateless.Pair, error) bool) {
	for i, sum := range s.sums {
		if !yield(coded.Pair(i, sum), s.ctx.Err()) {
			return
		}
	}
}

// Close releases the snapshot. Idempotent.
func (s *Scope) Close() error { return s.snap.Close() }

// Records implements Replica.
func (s *Scope) Records() uint64 { return s.records }

// Digest implements Replica.
func (s *Scope) Digest() dbadapter.Digest { return s.digest }

// Key implements Replica.
func (s *Scope) Key() rateless.Key { return s.key }

// Hasher implements Replica.
func (s *Scope) Hasher() dbadapter.Hasher { return s.hasher }

// Estimator implements Replica.
func (s *Scope) Estimator() rateless.Estimator { return s.sketch.Estimator() }

// Cells implements Replica.
func (s *Scope) Cells(from, to int) ([]rateless.Cell, error) {
	if to > s.sketch.Len() {
		if err := s.extend(min(2*to, MaxCells)); err != nil {
			return nil, err
		}
	}
	return s.sketch.Cells(from, to)
}

// Decoded implements Replica.
func (s *Scope) Decoded() {}

// Lookup implements Replica.
func (s *Scope) Lookup(indices []dbadapter.Index, sums []dbadapter.Checksum) error {
	for n, i := range indices {
		sums[n] = s.sums[i]
	}
	return nil
}

// Bucket implements Replica. Only the records in the scope are in it.
func (s *Scope) Bucket(index dbadapter.Index) ([]dbadapter.Record, error) {
	all, err := s.snap.Bucket(index)
	if err != nil {
		return nil, err
	}
	in := all[:0]
	for _, r := range all {
		if len(r.Key) >= len(s.prefix) && string(r.Key[:len(s.prefix)]) == string(s.prefix) {
			in = append(in, r)
		}
	}
	return in, nil
}

// All implements Replica.
func (s *Scope) All() iter.Seq2[dbadapter.Record, error] { return s.snap.Scan(s.ctx, s.prefix, nil) }

// Apply implements Replica.
func (s *Scope) Apply(records []dbadapter.Record) ([]Verdict, error) { return s.door(records) }
