package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// An import into a namespace that is cut into shards collects a window of items, sorts it by
// shards, and hands each shard's items to its hosts, many in a message, while the next window
// is collected. Where this node is a host that is settled, they are imported here first.

// Bounds of a window; two are in memory at once. A window ends before a key that it has
// already: the next item of the key sees what this one wrote.
const (
	importWindow      = 8192
	importWindowBytes = 8 << 20
	// importShardsAtOnce are handed over beside one another.
	importShardsAtOnce = 16
)

// shardImport is an import into several shards.
type shardImport struct {
	ns  *Namespace
	ack route.Ack
	// told is told of items that are refused; nil: nobody is.
	told func(at int64, item Item)

	result ImportResult
}

// imported is an item on its way.
type imported struct {
	node.Item
	ns      *node.Namespace
	number  int64 // counted from 1
	awaited bool  // it counts among the writes that callers wait for
	landing
	doubt
}

// itemError is why an item could not be imported.
type itemError struct {
	number int64
	err    error
}

func (e *itemError) Error() string { return fmt.Sprintf("item %d: %v", e.number, e.err) }

func (e *itemError) Unwrap() error { return e.err }

// window is what is imported at a time.
type window struct {
	ns     *node.Namespace
	items  []*imported
	places map[string]struct{}
	weight int
}

// full reports whether an item has to wait for the next window.
func (w *window) full(item *node.Item) bool {
	_, there := w.places[string(item.Key)]
	return there || len(w.items) >= importWindow || len(w.items) > 0 && w.weight+len(item.Key)+len(item.Value) > importWindowBytes
}

func (w *window) add(item *node.Item, number int64) {
	own := *item
	own.Key, own.Value = bytes.Clone(item.Key), bytes.Clone(item.Value)
	w.items = append(w.items, &imported{Item: own, number: number, ns: w.ns})
	w.places[string(own.Key)] = struct{}{}
	w.weight += len(item.Key) + len(item.Value)
}

// importShards imports into a namespace that is cut into shards.
func (ns *Namespace) importShards(ctx context.Context, items iter.Seq2[Item, error], o *importOptions) (ImportResult, error) {
	im := &shardImport{ns: ns, ack: ack(&o.draft), told: o.refused}
	under := make(chan error, 1)
	under <- nil // of the window that is being imported
	w := &window{ns: ns.core, places: map[string]struct{}{}}
	begin := func() error { // when the window before has ended
		if err := <-under; err != nil {
			return err
		}
		begun := w
		w = &window{ns: ns.core, places: map[string]struct{}{}}
		go func() { under <- im.run(ctx, begun) }()
		return nil
	}
	number, failed := int64(0), error(nil)
	for item, err := range items {
		own := node.Item(item)
		if err == nil {
			err = ns.core.CheckItem(&own)
		}
		if err == nil {
			err = ctx.Err()
		}
		if number++; err != nil {
			failed = &itemError{number, err}
			break
		}
		if w.full(&own) {
			if err := begin(); err != nil {
				return im.result, err
			}
		}
		w.add(&own, number)
	}
	if len(w.items) > 0 {
		if err := begin(); err != nil {
			return im.result, err
		}
	}
	if err := <-under; err != nil {
		failed = err // of an item before it
	}
	return im.result, failed
}

// run imports a window. The error is that of its first item that failed; those behind it may
// be written all the same, and are unchanged when they are imported again.
func (im *shardImport) run(ctx context.Context, w *window) error {
	defer func() {
		for _, i := range w.items {
			im.landed(i)
		}
	}()
	parts := map[placement.Shard][]*imported{}
	for _, item := range w.items {
		number := im.ns.core.Home(item.Key)
		parts[number] = append(parts[number], item)
	}
	places := make(chan struct{}, importShardsAtOnce)
	var running sync.WaitGroup
	var mu sync.Mutex // guards what follows
	var sum ImportResult
	var failed *itemError
	for number, part := range parts {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			counts, err := im.shard(ctx, number, part, 1)
			mu.Lock()
			defer mu.Unlock()
			sum.add(&counts)
			if err != nil && (failed == nil || err.number < failed.number) {
				failed = err
			}
		})
	}
	running.Wait()
	if failed != nil {
		im.result.Items = failed.number - 1
		return failed
	}
	im.result.add(&sum)
	for _, i := range w.items {
		if i.refused && im.told != nil {
			im.told(i.number-1, Item(i.Item))
		}
	}
	return nil
}

// add adds the counts of further items.
func (r *ImportResult) add(o *ImportResult) {
	r.Items += o.Items
	r.Written += o.Written
	r.Unchanged += o.Unchanged
	r.Stale += o.Stale
	r.Expired += o.Expired
	r.Full += o.Full
	r.Refused += o.Refused
	r.AsNew += o.AsNew
}

// shard imports a window's items of a shard; tries counts the calls for those that an earlier one has left.
func (im *shardImport) shard(ctx context.Context, number placement.Shard, part []*imported, tries int) (ImportResult, *itemError) {
	remote := im.ns.core.Shard(number)
	need, err := remote.Enough(im.ack)
	if err != nil {
		return ImportResult{}, &itemError{part[0].number, err}
	}
	named, _ := remote.Hosts() // Enough has asked
	self := node.ID(im.ns.node.self.id)
	others := len(slices.DeleteFunc(slices.Clone(named), func(id node.ID) bool { return id == self }))
	set := remote.Here()
	if set == nil || !set.Settled() && others >= need {
		return im.hand(ctx, number, part)
	}
	sh := im.ns.node.shard(set)
	for tries := 1; sh == nil && others < need && tries < node.OfferTries && sleep(ctx, 100*time.Millisecond); tries++ {
		sh = im.ns.node.shard(set) // it is being opened
	}
	if sh == nil {
		return im.hand(ctx, number, part)
	}
	anew, part := im.doubted(ctx, remote, sh, part)
	counts, failed := im.collect(ctx, number, sh, part, need, tries)
	if len(anew) > 0 {
		further, err := im.hand(ctx, number, anew)
		counts.add(&further)
		if err != nil && (failed == nil || err.number < failed.number) {
			failed = err
		}
	}
	return counts, failed
}

// collect imports items of a shard into this node's copy, and hands them to others if more are to hold them.
func (im *shardImport) collect(ctx context.Context, number placement.Shard, sh *shard, part []*imported, need, tries int) (counts ImportResult, failed *itemError) {
	if len(part) == 0 {
		return counts, nil
	}
	here := sh.set.Import()
	defer here.End()
	here.Refused = func(at int64, _ *node.Item) { part[at].refused = true }
	err := sh.collect(ctx, here, func(yield func(Item, error) bool) {
		for _, item := range part {
			if !yield(Item(item.Item), nil) {
				return
			}
		}
	})
	counts = ImportResult(here.Result)
	done := min(counts.Items, int64(len(part)))
	first, rest := part[:done], part[done:]
	if err != nil && (len(rest) == 0 || !leftMeanwhile(ctx, err) && !errors.Is(err, node.ErrLate)) {
		return counts, &itemError{part[min(done, int64(len(part)-1))].number, err}
	}
	if need > 1 { // otherwise a push brings it to the others
		held, failed := im.heldHere(sh, first)
		if failed != nil && leftMeanwhile(ctx, failed.err) {
			held, failed = first, nil
		}
		if failed == nil && len(held) > 0 {
			_, failed = im.hand(ctx, number, held)
		}
		if failed != nil {
			return counts, failed
		}
	}
	if len(rest) == 0 {
		return counts, nil
	}
	var further ImportResult
	if errors.Is(err, node.ErrLate) && tries < node.OfferTries { // of one of them, since this node has made a promise meanwhile
		further, failed = im.shard(ctx, number, rest, tries+1)
	} else {
		further, failed = im.hand(ctx, number, rest)
	}
	counts.add(&further)
	return counts, failed
}

// leftMeanwhile reports whether a shard failed here since it has left this node, by a layout that came
// meanwhile: its hosts take what is left.
func leftMeanwhile(ctx context.Context, err error) bool {
	return ctx.Err() == nil && (errors.Is(err, node.ErrNotHost) || errors.Is(err, ErrClosed))
}

// heldHere are the records that this node holds of a part, which other hosts are to hold, too.
func (im *shardImport) heldHere(sh *shard, part []*imported) (held []*imported, failed *itemError) {
	for _, item := range part {
		r, err := sh.set.Held(item.Key)
		if err != nil {
			return nil, &itemError{item.number, err}
		}
		if r != nil {
			item.landing = landing{record: r, held: []ID{im.ns.node.self.id}, here: sh, foreign: !item.made(r)}
			held = append(held, item)
		}
	}
	return held, nil
}

// made reports whether a record that is held here was made of the item, as far as that can be
// seen: of a dated one it has the date.
func (i *imported) made(r *dbadapter.Record) bool {
	own := dbadapter.Record{Value: i.Value, Deleted: i.Deleted, Expires: i.ExpiryStamp()}
	if !i.Time.IsZero() && r.Version != (dbadapter.Version{Clock: dbadapter.TimestampAt(i.Time)}) {
		return false
	}
	return r.SameContent(&own)
}
