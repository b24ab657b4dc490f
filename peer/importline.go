package peer

import (
	"context"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
)

// importLine commits the batches of an import, on a goroutine of its own, while the
// caller reads the items of the next one: reading, signing and committing overlap.
type importLine struct {
	ns      *Namespace
	im      *node.Import
	batches chan *node.ImportBatch
	done    chan struct{} // closed when the line has ended
	failed  error         // why, if it was not end; read after done
}

func (ns *Namespace) beginImport(ctx context.Context, im *node.Import) *importLine {
	l := &importLine{ns: ns, im: im, batches: make(chan *node.ImportBatch), done: make(chan struct{})}
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
// batch that failed; the batches after it are lost.
func (l *importLine) end() error {
	if b := l.im.Cut(); b.Items() > 0 {
		l.take(b)
	}
	close(l.batches)
	<-l.done
	return l.failed
}

// made is a batch with its writes, or why it has none.
type made struct {
	*node.ImportBatch
	writes []dbadapter.Write
	err    error
}

func makeWrites(b *node.ImportBatch) *made {
	writes, err := b.Writes()
	return &made{b, writes, err}
}

// run commits a batch, and those that come while one is committed. It holds the
// namespace's commits, and never while it waits for items alone: a write that waits
// for them comes after two batches at most.
func (l *importLine) run(ctx context.Context, b *node.ImportBatch) error {
	release := l.im.Hold()
	defer func() { release() }()
	for m := makeWrites(b); ; {
		if m.err != nil {
			return l.failure(m, m.err)
		}
		var outcomes []dbadapter.Outcome
		var err error
		committed := make(chan struct{})
		go func() {
			defer close(committed)
			if len(m.writes) > 0 {
				outcomes, err = l.ns.core.Store.Apply(ctx, m.writes)
			}
		}()
		var following *node.ImportBatch
		var next *made
		select {
		case following = <-l.batches: // nil: they have ended
			if following != nil && !following.Follows(m.ImportBatch) && !l.im.Wanted() {
				next = makeWrites(following)
			}
		case <-committed:
		}
		<-committed
		if err != nil {
			return l.failure(m, err)
		}
		m.Judge(outcomes)
		if following == nil {
			return nil
		}
		if next == nil {
			release()
			release = l.im.Hold()
			next = makeWrites(following)
		}
		m = next
	}
}

func (l *importLine) failure(m *made, err error) error {
	at := l.im.Result.Items
	return fmt.Errorf("write items %d to %d: %w", at+1, at+int64(m.Items()), err)
}
