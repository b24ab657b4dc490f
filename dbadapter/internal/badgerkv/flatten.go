package badgerkv

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// Badger's Flatten merges tables step by step, for minutes in a large store, and takes
// no context. Before each step it writes a line to its log, while it holds no lock.
// There a compaction lets commits go first, and ends once its context has: by a panic,
// the only way out of a logger, which flatten recovers.

// compactionSteps is told of each line of Badger's log.
type compactionSteps struct{ before atomic.Pointer[func()] }

// stepLine begins the line of a step. Only Flatten writes it, on its caller's goroutine.
const stepLine = "Attempting to compact with"

func (c *compactionSteps) logged(format string) {
	if before := c.before.Load(); before != nil && strings.HasPrefix(format, stepLine) {
		(*before)()
	}
}

// interrupted is what the panic carries.
type interrupted struct{ err error }

// flatten merges all tables, until the context ends.
func (d *db) flatten(ctx context.Context, c kv.Commits) (err error) {
	before := func() {
		c.Pause(ctx)
		if err := ctx.Err(); err != nil {
			panic(interrupted{err})
		}
	}
	d.steps.before.Store(&before)
	defer d.steps.before.Store(nil)
	defer func() {
		switch p := recover().(type) {
		case nil:
		case interrupted:
			err = p.err
		default:
			panic(p)
		}
	}()
	return d.write(func() error { return d.badger.Flatten(1) })
}
