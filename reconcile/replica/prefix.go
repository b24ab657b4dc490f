package replica

import (
	"bytes"
	"context"
	"iter"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/reconcile"
)

// Prefix is a replica of the keys that begin with a prefix, sketched by a scan:
// it costs time and memory in proportion to the records with that prefix.
type Prefix struct {
	ctx     context.Context // the sync's; a replica's methods are steps of it
	tick    func() error
	keys    reconcile.Keys
	prefix  []byte
	store   dbadapter.Snapshot
	digest  dbadapter.Digest
	records uint64
	sums    map[dbadapter.Index]dbadapter.Checksum
	sketch  *rateless.Sketch
}

var _ reconcile.Replica = (*Prefix)(nil)

// OpenPrefix opens a replica of the records of ns with that prefix, as of now,
// by a scan of them. It must be closed. ctx and tick are as in Live.Snapshot.
func OpenPrefix(ctx context.Context, ns dbadapter.Namespace, keys reconcile.Keys, prefix []byte, tick func() error) (*Prefix, error) {
	store, err := ns.Snapshot()
	if err != nil {
		return nil, err
	}
	p := &Prefix{ctx: ctx, tick: tick, keys: keys, prefix: prefix, store: store, sums: map[dbadapter.Index]dbadapter.Checksum{}}
	if err := p.scan(); err != nil {
		store.Close()
		return nil, err
	}
	return p, nil
}

func (p *Prefix) scan() error {
	buckets := map[dbadapter.Index]*dbadapter.Bucket{} // the records come by key, as a bucket takes them
	for r, err := range ticking(p.tick, p.store.Scan(p.ctx, p.prefix, nil)) {
		if err != nil {
			return err
		}
		b := buckets[r.Index]
		if b == nil {
			b = &dbadapter.Bucket{}
			buckets[r.Index] = b
		}
		b.Add(&r)
		p.digest = p.digest.Add(r.Digest)
		p.records++
	}
	for i, b := range buckets {
		p.sums[i] = b.Pair(p.keys.Hasher).Checksum
	}
	return p.extend(liveCells(p.records))
}

// extend sketches the records in that many cells.
func (p *Prefix) extend(cells int) error {
	sketch := rateless.NewSketch(p.keys.Cells, cells)
	if err := sketch.AddAll(ticking(p.tick, p.pairs)); err != nil {
		return err
	}
	p.sketch = sketch
	return nil
}

// pairs yields the replica's pairs until the sync is cancelled.
func (p *Prefix) pairs(yield func(rateless.Pair, error) bool) {
	for i, sum := range p.sums {
		if !yield(coded.Pair(i, sum), p.ctx.Err()) {
			return
		}
	}
}

// Close releases the snapshot. Idempotent.
func (p *Prefix) Close() error { return p.store.Close() }

// Records implements reconcile.Replica.
func (p *Prefix) Records() uint64 { return p.records }

// Digest implements reconcile.Replica.
func (p *Prefix) Digest() dbadapter.Digest { return p.digest }

// Estimator implements reconcile.Replica.
func (p *Prefix) Estimator() rateless.Estimator { return p.sketch.Estimator() }

// Cells implements reconcile.Replica.
func (p *Prefix) Cells(from, to int) ([]rateless.Cell, error) {
	if to > p.sketch.Len() {
		if err := p.extend(min(2*to, reconcile.MaxCells)); err != nil {
			return nil, err
		}
	}
	return p.sketch.Cells(from, to)
}

// Decoded implements reconcile.Replica.
func (p *Prefix) Decoded() {}

// Lookup implements reconcile.Replica.
func (p *Prefix) Lookup(indices []dbadapter.Index, sums []dbadapter.Checksum) error {
	for n, i := range indices {
		sums[n] = p.sums[i]
	}
	return nil
}

// Bucket implements reconcile.Replica. Only the records with the prefix are in it.
func (p *Prefix) Bucket(index dbadapter.Index) ([]dbadapter.Record, error) {
	all, err := p.store.Bucket(index)
	if err != nil {
		return nil, err
	}
	var in []dbadapter.Record
	for _, r := range all {
		if bytes.HasPrefix(r.Key, p.prefix) {
			in = append(in, r.Record)
		}
	}
	return in, nil
}

// All implements reconcile.Replica.
func (p *Prefix) All() iter.Seq2[dbadapter.Record, error] {
	return plain(ticking(p.tick, p.store.Scan(p.ctx, p.prefix, nil)))
}
