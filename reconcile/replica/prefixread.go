package replica

import (
	"errors"
	"iter"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

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

// inRanges yields the records of the replica, of all that the namespace holds in its
// ranges.
func (p *Prefix) inRanges() iter.Seq2[dbadapter.Hashed, error] {
	return func(yield func(dbadapter.Hashed, error) bool) {
		from, to := p.span.Indices()
		for part, err := range parts(p.ctx, p.store, from, to) {
			if err != nil {
				yield(dbadapter.Hashed{}, err)
				return
			}
			for r, err := range p.under(part) {
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}

// under yields the records of the replica under indices, which ascend.
func (p *Prefix) under(indices []dbadapter.Index) iter.Seq2[dbadapter.Hashed, error] {
	return func(yield func(dbadapter.Hashed, error) bool) {
		rest := indices
		for n, largest := 1, 1; len(rest) > 0; n = max(1, min(2*n, tickEvery, aheadBytes/largest)) {
			some := rest[:min(n, len(rest))]
			rest = rest[len(some):]
			err := p.tick()
			if err == nil {
				err = p.ctx.Err()
			}
			var read [][]dbadapter.Hashed
			if err == nil {
				read, err = p.Buckets(some)
			}
			if err != nil {
				yield(dbadapter.Hashed{}, err)
				return
			}
			for _, bucket := range read {
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
