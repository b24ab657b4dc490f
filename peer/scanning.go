package peer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A scan of a namespace that is cut into shards reads those that this node holds here, and
// each other one at a host that is sure, page by page. Its cursor is the last key alone.

// Bounds of the pages of a scan: scanBytes are shared by those of all shards, of which two
// are here at a time, one that is read and one that is fetched meanwhile. A page that is
// fetched is not less than scanLeast bytes.
const (
	scanBytes = 16 << 20
	scanLeast = 4 << 10
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
		if set := ns.core.Shard(number).Here(); set != nil && set.Settled() {
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
	most := max(scanLeast, min(wire.BatchBytes, scanBytes/2/len(away)))
	for _, number := range away {
		all = append(all, ns.scanAway(ctx, number, prefix, s, most))
	}
	return all
}

// fetched is a page, or why there is none.
type fetched struct {
	records []dbadapter.Record
	err     error
}

// scanAway yields the records of a shard that others hold. They are fetched while the caller
// reads, and no further than one page ahead of it.
func (ns *Namespace) scanAway(ctx context.Context, number placement.Shard, prefix []byte, s *scan, most int) iter.Seq2[dbadapter.Hashed, error] {
	pages := make(chan fetched)
	ns.request(func() {
		defer close(pages)
		for after := s.after; ; {
			page, err := ns.page(ctx, number, prefix, after, most)
			next := fetched{err: err}
			if err == nil {
				next.records = page.Records
			}
			select {
			case pages <- next:
			case <-ctx.Done():
				return
			}
			if err != nil || !page.More {
				return
			}
			after = page.Records[len(page.Records)-1].Key
		}
	})
	return func(yield func(dbadapter.Hashed, error) bool) {
		for {
			var page fetched
			var more bool
			select {
			case page, more = <-pages:
			case <-ctx.Done():
				page.err = context.Cause(ctx)
			}
			if page.err != nil {
				yield(dbadapter.Hashed{}, page.err)
				return
			}
			if !more {
				return
			}
			for i := range page.records {
				r := &page.records[i]
				if (s.tombstones || ns.core.Absent(r) == nil) && !yield(dbadapter.Hashed{Record: *r}, nil) {
					return
				}
			}
		}
	}
}

// page fetches the records of a shard behind a key from a host that is sure: the nearest, or
// the next one where that does not answer. The error is ErrUnsure, and names the shard.
func (ns *Namespace) page(ctx context.Context, number placement.Shard, prefix, after []byte, most int) (*node.Page, error) {
	for tries := 1; ; tries++ {
		remote := ns.core.Shard(number)
		var mu sync.Mutex // guards pages
		pages := map[node.ID]*node.Page{}
		found, _ := ns.readAt(ctx, remote, false, &ns.node.routing.pages, func(ctx context.Context, id ID) (route.Answer, error) {
			page, err := ns.pageOf(ctx, remote, id, prefix, after, most)
			if err != nil {
				return route.Answer{}, err
			}
			mu.Lock()
			defer mu.Unlock()
			pages[node.ID(id)] = page
			return page.Answer, nil
		})
		why := map[ID]error{}
		for _, h := range found.Heard {
			switch {
			case h.Answer != nil && h.Answer.Record != nil:
				mu.Lock()
				defer mu.Unlock()
				return pages[h.Peer], nil
			case h.Answer != nil && h.Answer.Host:
				why[ID(h.Peer)] = errNotSure
			case h.Answer != nil:
				why[ID(h.Peer)] = errNoHost
			case h.Err != nil:
				why[ID(h.Peer)] = h.Err
			}
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if tries > 1 || !ns.heed(ctx, why, found.Moved, found.MovedBy) {
			return nil, fmt.Errorf("%w: of shard %d, so that what follows is missing; go on behind the last key when its hosts are there again: %s", ErrUnsure, number, words(why))
		}
	}
}

var errNotSure = errors.New("it is a host since a short while ago, and is not sure yet of what it does not hold")

// pageOf asks one host.
func (ns *Namespace) pageOf(ctx context.Context, remote *node.Remote, id ID, prefix, after []byte, most int) (*node.Page, error) {
	n := ns.node
	leave, err := n.routing.places.take(ctx, id)
	if err != nil {
		return nil, err
	}
	defer leave()
	n.metrics.routed.WithLabelValues("scan").Inc()
	ask, m, _, err := n.askRouted(ctx, id, func(id node.ID) (*wire.Ask, error) { return remote.AskScan(id, prefix, after, most) })
	if err != nil {
		return nil, err
	}
	page, err := remote.Page(node.ID(id), ask, m)
	n.blame(ns, id, m, err)
	return page, err
}
