package kvstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/grouped"
	"github.com/syncd-io/syncd/dbadapter/internal/queue"
)

// committer is the single writer of a store. Its queue gathers the batches of many
// callers, and each group is one transaction of the database with one write to the
// disk.
type committer struct {
	store *Store
	queue *queue.Queue[*batch]

	underway underway

	// landing is the transaction that lands while the next one is prepared.
	landing atomic.Pointer[prepared]

	// Used by the queue's goroutine only, until it has been stopped.
	head  head   // with the transaction that lands
	arena []byte // index and log entries of the transaction that is prepared
	puts  []put
	// failed is set for good when it is unknown what the disk holds. While a transaction
	// lands, the goroutine that does so may set it, and alone reads it.
	failed error

	arenas sync.Pool // of *[]byte
	// transactions counts what was committed; tests read it.
	transactions atomic.Int64
}

// batch is what one caller of Apply writes.
type batch = grouped.Batch[*namespace]

func (c *committer) start(s *Store, h head) {
	c.store, c.head = s, h
	c.queue = queue.Start(c.commit)
}

// stop ends the goroutine after what is queued. Idempotent.
func (c *committer) stop() { c.queue.Stop() }

// do runs a function between two commits.
func (c *committer) do(ctx context.Context, run func() error) error {
	return c.queue.Do(ctx, func() error {
		if c.failed != nil {
			return c.failed
		}
		if err := c.store.awake(); err != nil && !errors.Is(err, dbadapter.ErrNoRoom) {
			return err
		}
		return run()
	})
}
