package replica

import (
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
	type bucket struct {
		latest  dbadapter.Timestamp
		digests []dbadapter.Digest
	}
	shared := map[dbadapter.Index]*bucket{} // the records come by key, as a checksum wants them
	for r, err := range p.All() {
		if err != nil {
			return err
		}
		i := p.keys.Hasher.Index(r.Key)
		b := shared[i]
		if b == nil {
			b = &bucket{}
			shared[i] = b
		}
		d := p.keys.Hasher.Digest(&r)
		b.latest = max(b.latest, r.Version.Clock)
		b.digests = append(b.digests, d)
		p.digest = p.digest.Add(d)
		p.records++
	}
	for i, b := range shared {
		p.sums[i] = p.keys.Hasher.Checksum(b.latest, b.digests)
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
	in := all[:0]
	for _, r := range all {
		if len(r.Key) >= len(p.prefix) && string(r.Key[:len(p.prefix)]) == string(p.prefix) {
			in = append(in, r)
		}
	}
	return in, nil
}

// All implements reconcile.Replica.
func (p *Prefix) All() iter.Seq2[dbadapter.Record, error] {
	return ticking(p.tick, p.store.Scan(p.ctx, p.prefix, nil))
}
