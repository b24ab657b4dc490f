package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A scan of a namespace that is cut into shards reads those that this node holds here, and
// each other one at a host that is sure, page by page. Its cursor is the last key alone.

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
	// proving is for how long a page is asked for again where a host is not sure yet: it has a sync
	// with another one made then, which it lacks since its start.
	proving = 4 * time.Second
	// partsEvery is how often a page that comes is noted.
	partsEvery = 100 * time.Millisecond
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
		if set := ns.core.Shard(number).Here(); set != nil && set.Prove() {
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

	mu     sync.Mutex // guards what follows, while the lists of members are made equal
	heeded int        // so often
	equal  bool       // the last time came to its end
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
	a.request(func() {
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

// fetch fetches the records of a shard behind a key from a host that is sure: the nearest,
// or the next one where that does not answer. The error is ErrUnsure, and names the shard.
func (a *awayScan) fetch(ctx context.Context, number placement.Shard, after []byte) fetched {
	begun := time.Now()
	for tries := 1; ; tries++ {
		a.mu.Lock()
		heeded := a.heeded
		a.mu.Unlock()
		page, found, err := a.page(ctx, number, after)
		if err != nil {
			return fetched{err: err}
		}
		if page != nil {
			return fetched{records: page.Records, more: page.More && len(page.Records) > 0}
		}
		why := map[ID]error{}
		unproved := false
		for _, h := range found.Heard {
			switch {
			case h.Answer != nil && h.Answer.Host:
				why[ID(h.Peer)], unproved = errNotSure, true
			case h.Answer != nil:
				why[ID(h.Peer)] = errNoHost
			case h.Err != nil:
				why[ID(h.Peer)] = h.Err
			default:
				why[ID(h.Peer)] = errSilent
			}
		}
		if unproved && time.Since(begun) < proving && sleep(ctx, proving/8) {
			tries--
			continue
		}
		if tries > 1 || !a.heedOnce(ctx, heeded, why, found) {
			return fetched{err: fmt.Errorf("%w: of shard %d, so that what follows is missing; when its hosts are there again, begin anew, or go on behind the last key: %s", ErrUnsure, number, words(why))}
		}
	}
}

var (
	errNotSure = errors.New("it has not been found equal with another host since it was started or took up the shard, and is not sure of what it does not hold")
	errSilent  = errors.New("its answer has not begun, or has stopped")
)

// heedOnce is heed, once for all pages that fail beside one another: heeded is how often
// it ran before the page was asked for.
func (a *awayScan) heedOnce(ctx context.Context, heeded int, why map[ID]error, found *route.Found) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.heeded == heeded {
		a.heeded, a.equal = heeded+1, a.heed(ctx, a.node.deadline(ctx), why, found.Moved, found.MovedBy)
	}
	return a.equal
}

// page asks the hosts of a shard once; nil: no host that is sure has answered. The time that
// they have begins when the page has its place.
func (a *awayScan) page(ctx context.Context, number placement.Shard, after []byte) (*node.Page, *route.Found, error) {
	paging := a.node.routing.paging
	if err := enter(ctx, paging); err != nil {
		return nil, nil, err
	}
	defer func() { <-paging }()
	remote := a.core.Shard(number)
	var mu sync.Mutex // guards pages
	pages := map[node.ID]*node.Page{}
	found, _ := a.readAt(ctx, remote, route.GetOptions{Patience: routePatience}, &a.node.routing.pages, func(ctx context.Context, id ID, part func()) (route.Answer, error) {
		page, err := a.pageOf(ctx, remote, id, after, part)
		if err != nil {
			return route.Answer{}, err
		}
		mu.Lock()
		defer mu.Unlock()
		pages[node.ID(id)] = page
		return page.Answer, nil
	})
	for _, h := range found.Heard {
		if h.Answer != nil && h.Answer.Record != nil {
			mu.Lock()
			defer mu.Unlock()
			return pages[h.Peer], &found, nil
		}
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	return nil, &found, nil
}

// pageOf asks one host. It calls part when a part of the page has come.
func (a *awayScan) pageOf(ctx context.Context, remote *node.Remote, id ID, after []byte, part func()) (*node.Page, error) {
	n := a.node
	leave, err := n.routing.places.take(ctx, id)
	if err != nil {
		return nil, err
	}
	defer leave()
	n.metrics.routed.WithLabelValues("scan").Inc()
	var last time.Time
	noted := func() {
		if now := time.Now(); now.Sub(last) > partsEvery {
			last = now
			part()
		}
	}
	ask, m, _, err := n.askRouted(ctx, id, func(id node.ID) (*wire.Ask, error) { return remote.AskScan(id, a.prefix, after, a.most) }, noted)
	if err != nil {
		return nil, err
	}
	page, err := remote.Page(node.ID(id), ask, m)
	n.blame(a.Namespace, id, m, err)
	return page, err
}
