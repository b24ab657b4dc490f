// Package importing drives an import of many records into a set ([node.Import]): it commits one batch while it
// reads the items of the next, so that reading, signing and committing overlap.
package importing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
)

// Run cuts items into batches, and commits those to the set of an import meanwhile. An error from the sequence, or of an item,
// ends it. All items before are kept, and the result counts them.
func Run(ctx context.Context, set *node.Set, im *node.Import, items iter.Seq2[node.Item, error]) (failed error) {
	l := line{set: set, im: im, batches: make(chan *node.ImportBatch)}
	commits, broken := errgroup.WithContext(context.WithoutCancel(ctx))
	commits.Go(func() error {
		for b := range l.batches {
			if err := l.run(ctx, b); err != nil {
				return err
			}
		}
		return nil
	})
	take := func(b *node.ImportBatch) bool { // false: a batch before it failed
		select {
		case l.batches <- b:
			return true
		case <-broken.Done():
			return false
		}
	}
	defer func() {
		if b := im.Cut(); b.Items() > 0 {
			take(b)
		}
		close(l.batches)
		failed = errors.Join(failed, commits.Wait())
	}()
	number := int64(0)
	for item, err := range items {
		if err == nil {
			err = im.Check(&item)
		}
		if err == nil {
			err = ctx.Err()
		}
		number++
		if err != nil {
			return fmt.Errorf("item %d: %w", number, err)
		}
		for !im.Add(&item) {
			if !take(im.Cut()) {
				return nil // what is deferred says why
			}
		}
	}
	return nil
}

// line commits the batches of an import on a goroutine of its own. Meanwhile the
// caller reads the items of the next one, so that reading, signing and committing
// overlap. Its error is that of the first batch that failed. Some of those after it may
// be there, and the result counts none of them.
type line struct {
	set     *node.Set
	im      *node.Import
	batches chan *node.ImportBatch
}

// made is a batch with its writes, or why it has none, and what became of them.
type made struct {
	*node.ImportBatch
	writes   []dbadapter.Write
	outcomes []dbadapter.Outcome
	err      error
	done     chan struct{} // closed when it has been applied
}

func makeWrites(b *node.ImportBatch) *made {
	writes, err := b.Writes()
	return &made{ImportBatch: b, writes: writes, err: err, done: make(chan struct{})}
}

// applying bounds the batches that are committed at a time: a store prepares one while
// another is written to the disk.
const applying = 2

// run commits a batch, and those that come while batches are committed. It holds the
// namespace's commits, and never while it waits for items alone. So a write that waits
// for the commits gets its turn after three batches at most.
func (l *line) run(ctx context.Context, b *node.ImportBatch) error {
	release := l.im.Hold()
	defer func() { release() }()
	var under []*made // those that are being committed, the oldest first
	settle := func(left int) (err error) {
		for ; len(under) > left; under = under[1:] {
			<-under[0].done
			switch {
			case err != nil:
				under[0].Note(under[0].outcomes) // it may be there, behind the one that failed
			case under[0].err != nil:
				err = l.failure(under[0])
			default:
				under[0].Judge(under[0].outcomes)
			}
			if err != nil {
				left = 0 // what follows does not count, and must have ended
			}
		}
		return err
	}
	for {
		m := makeWrites(b)
		if m.err != nil {
			return cmp.Or(settle(0), l.failure(m))
		}
		if err := settle(applying - 1); err != nil {
			return err
		}
		under = append(under, m)
		go func() {
			defer close(m.done)
			if len(m.writes) > 0 {
				m.outcomes, m.err = l.set.Store.Apply(ctx, m.writes)
			}
		}()
		select {
		case b = <-l.batches:
		case <-m.done:
			b = nil
		}
		switch {
		case b == nil: // the items have ended, or the next batch is not full yet
			return settle(0)
		case l.im.Wanted() || slices.ContainsFunc(under, func(m *made) bool { return b.Follows(m.ImportBatch) }):
			if err := settle(0); err != nil {
				return err
			}
			release()
			release = l.im.Hold()
		}
	}
}

func (l *line) failure(m *made) error {
	at := l.im.Result.Items
	return fmt.Errorf("write items %d to %d: %w", at+1, at+int64(m.Items()), m.err)
}
