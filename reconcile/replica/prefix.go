package replica

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/internal/rangesum"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Prefix is a replica of the records whose keys begin with a prefix, and that lie in some
// ranges, as of one commit. It is sketched by reading them, so it costs time and memory in
// proportion to those records, and for some ranges to all keys with the prefix, or to all records
// in the ranges if those are fewer. Its methods may be called from one goroutine at a time.
type Prefix struct {
	ctx       context.Context // the sync's; a replica's methods are steps of it
	tick      func() error
	reserve   func(bytes int64) error
	live      *Live
	keys      reconcile.Keys
	prefix    []byte
	span      wire.Span
	store     dbadapter.Snapshot
	ranges    rangesum.Table
	estimator rateless.Estimator
	// sums has the checksum of each index, and sketch its cells; both are nil
	// once the decode is over.
	sums   map[dbadapter.Index]dbadapter.Checksum
	sketch *rateless.Sketch
	// held are the indices of the records, ascending, if they lie in some ranges only.
	held []dbadapter.Index
}

var _ reconcile.Replica = (*Prefix)(nil)

// errDecoded tells of a bug: cells or checksums are asked for after Decoded.
var errDecoded = errors.New("replica: read for a decode that is over")

// Prefix opens a replica of records of ns, the namespace that l follows, as of now. It holds
// those whose keys begin with prefix, and that lie in the ranges of span. It reads them all
// before it returns, so a responder must not call it before the peer has proved that it is a
// member. The replica must be closed. ctx and tick are as in Snapshot. Before it takes memory
// it asks reserve for so many bytes, if that is not nil, and ends with the error it returns.
func (l *Live) Prefix(ctx context.Context, ns dbadapter.Namespace, prefix []byte, span wire.Span, tick func() error, reserve func(bytes int64) error) (*Prefix, error) {
	if reserve == nil {
		reserve = func(int64) error { return nil }
	}
	if tick == nil {
		tick = func() error { return nil }
	}
	p := &Prefix{ctx: ctx, tick: tick, reserve: reserve, live: l, keys: l.keys, prefix: prefix, span: span}
	var err error
	if p.store, err = ns.Snapshot(); err != nil {
		return nil, err
	}
	if err := p.scan(); err != nil {
		p.store.Close() // it was only read
		return nil, err
	}
	return p, nil
}

// scan computes all but the cells from the records, and then the first cells.
func (p *Prefix) scan() error {
	if err := p.reserve(rangeBytes); err != nil {
		return err
	}
	err := p.sum(p.amongKeys())
	if errors.Is(err, errManyKeys) {
		p.ranges = rangesum.Table{}
		err = p.sum(inSpan(p.ctx, p.tick, p.store, p.span, p.Buckets))
	}
	if err != nil {
		return err
	}
	if p.span != (wire.Span{}) {
		p.held = slices.Sorted(maps.Keys(p.sums))
	}
	if err := p.extend(liveCells(p.Sum().Records)); err != nil {
		return err
	}
	p.estimator = p.sketch.Estimator()
	return nil
}

// sum makes the sums of the records, and their checksums.
func (p *Prefix) sum(all iter.Seq2[dbadapter.Hashed, error]) error {
	p.sums = map[dbadapter.Index]dbadapter.Checksum{}
	records := 0
	var shared []dbadapter.Index // by two keys with the prefix, or more
	for r, err := range all {
		if err != nil {
			return err
		}
		if records%reserveEvery == 0 {
			if err := p.reserve(reserveEvery * recordBytes); err != nil {
				return err
			}
		}
		records++
		p.ranges.Add(r.Index, dbadapter.Sum{Records: 1, Digest: r.Digest})
		if p.sums[r.Index] != 0 {
			shared = append(shared, r.Index)
		}
		p.sums[r.Index] = dbadapter.PairOf(p.keys.Hasher, &r).Checksum
	}
	for _, i := range shared {
		read, err := p.Buckets([]dbadapter.Index{i})
		if err != nil {
			return err
		}
		var b dbadapter.Bucket
		for n := range read[0] {
			b.Add(&read[0][n])
		}
		p.sums[i] = b.Pair(p.keys.Hasher).Checksum
	}
	return nil
}

// extend sketches the records in that many cells.
func (p *Prefix) extend(cells int) error {
	if err := p.reserve(int64(cells) * cellBytes); err != nil {
		return err
	}
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

// Close releases what the replica holds. Idempotent.
func (p *Prefix) Close() error {
	p.Decoded()
	return p.store.Close()
}

// Sum implements reconcile.Replica.
func (p *Prefix) Sum() dbadapter.Sum { return p.ranges.Total() }

// Ranges implements reconcile.Replica.
func (p *Prefix) Ranges(from, to dbadapter.Range) dbadapter.Sum { return p.ranges.Of(from, to) }

// Estimator implements reconcile.Replica.
func (p *Prefix) Estimator() rateless.Estimator { return p.estimator }

// Cells implements reconcile.Replica.
func (p *Prefix) Cells(from, to int) ([]rateless.Cell, error) {
	if p.sketch == nil {
		return nil, errDecoded
	}
	if to > p.sketch.Len() {
		if err := p.extend(max(to, min(2*to, reconcile.MaxCells))); err != nil {
			return nil, err
		}
	}
	return p.sketch.Cells(from, to)
}

// Decoded implements reconcile.Replica: what only a decode needs is released.
func (p *Prefix) Decoded() { p.sums, p.sketch = nil, nil }

// Lookup implements reconcile.Replica.
func (p *Prefix) Lookup(indices []dbadapter.Index, sums []dbadapter.Checksum) error {
	if p.sums == nil {
		return errDecoded
	}
	for n, i := range indices {
		sums[n] = p.sums[i]
	}
	return nil
}

// Buckets implements reconcile.Replica. Only the records with the prefix are in them.
func (p *Prefix) Buckets(indices []dbadapter.Index) ([][]dbadapter.Hashed, error) {
	all, err := p.store.Buckets(indices)
	other := func(r dbadapter.Hashed) bool { return !bytes.HasPrefix(r.Key, p.prefix) || !p.span.Holds(r.Index) }
	for n := range all {
		if slices.ContainsFunc(all[n], other) {
			all[n] = slices.DeleteFunc(slices.Clone(all[n]), other) // the store may go on using its own
		}
	}
	return all, err
}

// All implements reconcile.Replica. Where the records lie in some ranges only, it yields
// them by index, not by key.
func (p *Prefix) All() iter.Seq2[dbadapter.Hashed, error] {
	if p.span == (wire.Span{}) {
		return ticking(p.tick, p.store.Scan(p.ctx, p.prefix, nil))
	}
	return under(p.ctx, p.tick, p.held, p.Buckets)
}

// How the records with a prefix that lie in some ranges are found. They are looked for among all
// keys with the prefix, or among all that the namespace holds in these ranges.

// errManyKeys ends a scan by key: to read what the namespace holds in the ranges is less.
var errManyKeys = errors.New("replica: too many keys have the prefix")

// amongKeys yields the records of the replica, of all that have the prefix. It gives up
// once it has read more than the namespace holds in the ranges.
func (p *Prefix) amongKeys() iter.Seq2[dbadapter.Hashed, error] {
	return func(yield func(dbadapter.Hashed, error) bool) {
		most, read := p.live.holds(p.span), uint64(0)
		for r, err := range ticking(p.tick, p.store.Scan(p.ctx, p.prefix, nil)) {
			if read++; err == nil && read > most && p.span != (wire.Span{}) {
				err = errManyKeys
			}
			if (err != nil || p.span.Holds(r.Index)) && !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// inSpan yields the records that read gives of all that the namespace holds in the ranges of a span.
func inSpan(ctx context.Context, tick func() error, store dbadapter.Snapshot, span wire.Span, read readBuckets) iter.Seq2[dbadapter.Hashed, error] {
	return func(yield func(dbadapter.Hashed, error) bool) {
		from, to := span.Indices()
		for part, err := range parts(ctx, store, from, to) {
			if err != nil {
				yield(dbadapter.Hashed{}, err)
				return
			}
			for r, err := range under(ctx, tick, part, read) {
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}

// readBuckets is Buckets of a replica.
type readBuckets func(indices []dbadapter.Index) ([][]dbadapter.Hashed, error)

// under yields the records under indices, which ascend.
func under(ctx context.Context, tick func() error, indices []dbadapter.Index, read readBuckets) iter.Seq2[dbadapter.Hashed, error] {
	return func(yield func(dbadapter.Hashed, error) bool) {
		rest := indices
		for n, largest := 1, 1; len(rest) > 0; n = max(1, min(2*n, tickEvery, aheadBytes/largest)) {
			some := rest[:min(n, len(rest))]
			rest = rest[len(some):]
			err := tick()
			if err == nil {
				err = ctx.Err()
			}
			var buckets [][]dbadapter.Hashed
			if err == nil {
				buckets, err = read(some)
			}
			if err != nil {
				yield(dbadapter.Hashed{}, err)
				return
			}
			for _, bucket := range buckets {
				size := 0
				for i := range bucket {
					size += bucket[i].Weight()
					if !yield(bucket[i], nil) {
						return
					}
				}
				largest = max(largest, size)
			}
		}
	}
}
