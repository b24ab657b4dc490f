package peer

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
)

// importLine commits the batches of an import on a goroutine of its own. Meanwhile the
// caller reads the items of the next one, so that reading, signing and committing
// overlap.
type importLine struct {
	sh      *shard
	im      *node.Import
	batches chan *node.ImportBatch
	done    chan struct{} // closed when the line has ended
	failed  error         // why, if it was not end; read after done
}

func (sh *shard) beginImport(ctx context.Context, im *node.Import) *importLine {
	l := &importLine{sh: sh, im: im, batches: make(chan *node.ImportBatch), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for b := range l.batches {
			if l.failed = l.run(ctx, b); l.failed != nil {
				return
			}
		}
	}()
	return l
}

// take hands a batch to the line. It reports false where a batch before it failed.
func (l *importLine) take(b *node.ImportBatch) bool {
	select {
	case l.batches <- b:
		return true
	case <-l.done:
		return false
	}
}

// end commits what is left, and waits for the line. The error is that of the first
// batch that failed. Some of those after it may be there, and the result counts none of
// them.
func (l *importLine) end() error {
	if b := l.im.Cut(); b.Items() > 0 {
		l.take(b)
	}
	close(l.batches)
	<-l.done
	return l.failed
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
func (l *importLine) run(ctx context.Context, b *node.ImportBatch) error {
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
				m.outcomes, m.err = l.sh.set.Store.Apply(ctx, m.writes)
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

func (l *importLine) failure(m *made) error {
	at := l.im.Result.Items
	return fmt.Errorf("write items %d to %d: %w", at+1, at+int64(m.Items()), m.err)
}
