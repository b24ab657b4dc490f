package peer

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A scan of a namespace that is cut into shards reads those that this node holds here, and
// each other one at a whole host, page by page. Its cursor is the last key alone.

// Bounds of the pages of a scan.
const (
	// scanBytes of pages wait to be read, of all shards. A page that does not fit is fetched
	// again when its turn comes; of such pages there are as many bytes again at most, and one
	// record beyond a page's size. Beside them are the pages on their way.
	scanBytes = 16 << 20
	// scanLeast is the least size of a page that is asked for.
	scanLeast = 4 << 10
	// scanPages are on their way at once, of all scans of the node. They share the link, and
	// leave half of the places that the node has at a peer to its look-ups and writes.
	scanPages = node.MaxRouted / 2
)

// scans are what a scan merges: a sequence for each shard. Those of shards that others hold
// are fetched from now on, until the context ends.
func (ns *Namespace) scans(ctx context.Context, prefix []byte, s *scan) (all []iter.Seq2[dbadapter.Hashed, error]) {
	rule := ns.core.Rule()
	if rule == nil {
		for _, sh := range ns.shards() {
			all = append(all, sh.scan(ctx, prefix, s))
		}
		return all
	}
	var away []placement.Shard
	for number := range placement.Shard(rule.Shards) {
		var sh *shard
		if set := ns.core.WholeHere(number); set != nil {
			sh = ns.node.shard(set)
		}
		if sh == nil {
			away = append(away, number)
			continue
		}
		all = append(all, sh.scan(ctx, prefix, s))
	}
	if len(away) == 0 {
		return all
	}
	a := &awayScan{Namespace: ns, scan: s, prefix: prefix, most: max(scanLeast, min(wire.BatchBytes, scanBytes/2/len(away)))}
	for _, number := range away {
		all = append(all, a.shard(ctx, number))
	}
	return all
}

// awayScan is what the shards of a scan share that others hold.
type awayScan struct {
	*Namespace
	*scan
	prefix []byte
	most   int          // bytes of a page that is asked for
	held   atomic.Int64 // bytes of the pages that wait to be read
}

// fetched is a page, or the reason why there is no page.
type fetched struct {
	records []dbadapter.Record
	more    bool // further ones follow
	bytes   int64
	// dropped: there was no room for the page, and of its records there is the first key.
	dropped []byte
	err     error
}

// putOff reports whether a record is one of which a scan knows no more than the key: what it stands for
// follows. A record that is one has a version.
func putOff(r *dbadapter.Record) bool { return r.Version == dbadapter.Version{} }

// hold counts a page, and drops it where there is no room and it may be fetched again.
func (a *awayScan) hold(page *fetched, again bool) {
	if len(page.records) == 0 {
		return
	}
	for i := range page.records {
		page.bytes += int64(page.records[i].Weight()) + recordCost
	}
	if a.held.Add(page.bytes) <= a.room || !again {
		return
	}
	a.held.Add(-page.bytes)
	*page = fetched{dropped: bytes.Clone(page.records[0].Key)}
}

// recordCost is what a record takes beside its key and its value, about.
const recordCost = 128

// begin fetches a page beside its caller.
func (a *awayScan) begin(ctx context.Context, number placement.Shard, after []byte) <-chan fetched {
	next := make(chan fetched, 1)
	hosts{a.Namespace}.Go(ctx, func(ctx context.Context) {
		page := a.fetch(ctx, number, after)
		a.hold(&page, true)
		next <- page
	})
	return next
}

// shard yields the records of a shard. The first page is fetched from now on, and each
// further one while the caller reads the one before it, if there is room.
func (a *awayScan) shard(ctx context.Context, number placement.Shard) iter.Seq2[dbadapter.Hashed, error] {
	next := a.begin(ctx, number, a.after)
	return func(yield func(dbadapter.Hashed, error) bool) {
		for after := a.after; ; {
			var page fetched
			select {
			case page = <-next:
			case <-ctx.Done():
				page.err = context.Cause(ctx)
			}
			from := page.dropped
			if from != nil {
				if !yield(dbadapter.Hashed{Record: dbadapter.Record{Key: from}}, nil) {
					return
				}
				page = a.fetch(ctx, number, after)
				a.hold(&page, false) // it is the page that is read
			}
			if page.err != nil {
				yield(dbadapter.Hashed{}, page.err)
				return
			}
			next = nil
			if page.more {
				after = page.records[len(page.records)-1].Key
				if a.held.Load()+int64(a.most) <= a.room {
					next = a.begin(ctx, number, after)
				}
			}
			for i := range page.records {
				r := &page.records[i]
				if bytes.Compare(r.Key, from) < 0 { // it came since, and others have passed it
					continue
				}
				if (a.tombstones || a.core.Absent(r) == nil) && !yield(dbadapter.Hashed{Record: *r}, nil) {
					return
				}
			}
			a.held.Add(-page.bytes)
			if !page.more {
				return
			}
			if next == nil {
				next = a.begin(ctx, number, after)
			}
		}
	}
}

// fetch fetches the records of a shard behind a key from its nearest whole host. The error is ErrTooFew, and
// names the shard.
func (a *awayScan) fetch(ctx context.Context, number placement.Shard, after []byte) fetched {
	paging := a.node.routing.paging
	if err := enter(ctx, paging); err != nil {
		return fetched{err: err}
	}
	defer func() { <-paging }()
	page, err := a.Namespace.hosts.Page(ctx, number, a.prefix, after, a.most)
	if err != nil {
		return fetched{err: fmt.Errorf("what follows is missing; when the hosts are there again, begin anew, or go on behind the last key: %w", err)}
	}
	return fetched{records: page.Records, more: page.More && len(page.Records) > 0}
}
