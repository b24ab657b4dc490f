package shards

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A scan reads the shards of which this node is a whole host here, and each other one at a whole host, page by
// page. Its cursor is the last key alone.

// scanLeast is the least size of a page that is asked for.
const scanLeast = 4 << 10

// ScanOptions say what a scan reads.
type ScanOptions struct {
	Prefix, After []byte
	// Tombstones includes what reads as absent: deleted records, and those that have expired.
	Tombstones bool
	// Room is how many bytes of pages wait to be read, of all shards. Of a page that does not fit the first
	// record is kept alone, and the others are fetched again. Beside them are the pages on their way.
	Room int64
	// Size, if not nil, is set to the size of each record's value before that is yielded. A value that is a
	// body is then not read, and left out.
	Size *int
}

// ScanSet yields what this node holds in a set, by key, as it was when the loop began.
func ScanSet(ctx context.Context, set *node.Set, o *ScanOptions) iter.Seq2[dbadapter.Record, error] {
	return func(yield func(dbadapter.Record, error) bool) {
		snap, err := set.Store.Snapshot()
		if err != nil {
			yield(dbadapter.Record{}, err)
			return
		}
		defer snap.Close()
		for rec, err := range snap.Scan(ctx, o.Prefix, o.After) {
			if err == nil && !o.Tombstones && !set.Namespace().Present(&rec.Record) {
				continue
			}
			if !yield(rec.Record, err) {
				return
			}
		}
	}
}

// Scan yields the records of all shards by key. Those of shards that others hold are fetched from now on,
// until the context ends. ErrTooFew: no whole host of a shard answers, or of a body. bodies.ErrLost: some bodies
// are lost, and all else was given.
func (s *Shards) Scan(ctx context.Context, o ScanOptions) iter.Seq2[dbadapter.Record, error] {
	o.After = s.NS.BehindReserved(o.After)
	var all []iter.Seq2[dbadapter.Record, error]
	var away []placement.Shard
	for shard := range placement.Shard(s.NS.Rule().Shards) {
		if set := s.NS.WholeHere(shard); set != nil {
			all = append(all, ScanSet(ctx, set, &o))
		} else {
			away = append(away, shard)
		}
	}
	a := &scan{Shards: s, ScanOptions: o, most: max(scanLeast, min(wire.BatchBytes, int(o.Room)/2/max(1, len(away))))}
	for _, shard := range away {
		all = append(all, a.shard(ctx, shard))
	}
	records := ByKey(func(r *dbadapter.Record) []byte { return r.Key }, all)
	if !s.NS.Bodied() && o.Size == nil {
		return records
	}
	return s.values(ctx, records, &o)
}

// scan is what the shards of a scan share that others hold.
type scan struct {
	*Shards
	ScanOptions
	most int          // bytes of a page that is asked for
	held atomic.Int64 // bytes of the pages that wait to be read
}

// page is some records of a shard, by key.
type page struct {
	records []dbadapter.Record
	more    bool  // further ones follow behind the last one
	bytes   int64 // of the room
}

// hold counts a page, of which it keeps the first record alone where there is no room.
func (a *scan) hold(p *page) {
	for i := range p.records {
		p.bytes += int64(p.records[i].Weight()) + recordCost
	}
	if a.held.Add(p.bytes) <= a.Room || len(p.records) < 2 {
		return
	}
	a.held.Add(-p.bytes)
	*p = page{records: []dbadapter.Record{p.records[0]}, more: true}
}

// begin fetches a page beside its caller, who is to wait for it.
func (a *scan) begin(ctx context.Context, shard placement.Shard, after []byte) (wait func(until time.Duration) (page, error)) {
	return beside(ctx, a.Shards, func(ctx context.Context) (page, error) { return a.fetch(ctx, shard, after) })
}

// shard yields the records of a shard. The first page is fetched from now on, and each
// further one while the caller reads the one before it, if there is room.
func (a *scan) shard(ctx context.Context, shard placement.Shard) iter.Seq2[dbadapter.Record, error] {
	next := a.begin(ctx, shard, a.After)
	return func(yield func(dbadapter.Record, error) bool) {
		for after := a.After; ; {
			page, err := next(forever)
			if err != nil {
				yield(dbadapter.Record{}, err)
				return
			}
			next = nil
			if page.more {
				after = page.records[len(page.records)-1].Key
				if a.held.Load()+int64(a.most) <= a.Room {
					next = a.begin(ctx, shard, after)
				}
			}
			for i := range page.records {
				r := &page.records[i]
				if (a.Tombstones || a.NS.Absent(r) == nil) && !yield(*r, nil) {
					return
				}
			}
			a.held.Add(-page.bytes)
			if !page.more {
				return
			}
			if next == nil {
				next = a.begin(ctx, shard, after)
			}
		}
	}
}

// fetch fetches the records of a shard behind a key from its nearest whole host. The error is ErrTooFew, and
// names the shard.
func (a *scan) fetch(ctx context.Context, shard placement.Shard, after []byte) (p page, err error) {
	if a.Paging != nil {
		leave, err := a.Paging(ctx)
		if err != nil {
			return p, err
		}
		defer leave()
	}
	if p, err = a.page(ctx, shard, a.Prefix, after, a.most); err != nil {
		return p, fmt.Errorf("what follows is missing; when the hosts are there again, begin anew, or go on behind the last key: %w", err)
	}
	a.hold(&p)
	return p, nil
}
