package kvstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
)

// committer is the single writer of a store. Callers queue their batches; its
// goroutine takes what is queued, up to the bounds of one batch, and commits
// it as one transaction of the database with one write to the disk (group commit;
// DeWitt et al., "Implementation techniques for main memory database systems",
// 1984). While it waits for the disk, the next group gathers.
type committer struct {
	store *Store
	queue chan *request
	done  chan struct{} // closed when the goroutine has ended

	mu      sync.RWMutex // held for reading while sending to queue
	stopped bool         // guarded by mu

	underway underway

	// Used by the goroutine only, until done is closed.
	head   head
	arena  []byte // index and log entries of the running transaction
	failed error  // set for good when it is unknown what the disk holds
	// transactions counts what was committed; tests read it.
	transactions atomic.Int64
}

// request is a batch, or some other work for the committer's goroutine.
type request struct {
	namespace *namespace
	items     []commit.Item
	size      int
	run       func() error

	state    atomic.Int32
	outcomes []dbadapter.Outcome
	err      error
	done     chan struct{}
}

// States of a request. The goroutine that moves it on from queued owns it.
const (
	queued = iota
	taken
	cancelled
)

const queueLength = 1024

func (c *committer) start(s *Store, h head) {
	c.store, c.head = s, h
	c.queue, c.done = make(chan *request, queueLength), make(chan struct{})
	go c.loop()
}

// stop ends the goroutine after what is queued. Idempotent.
func (c *committer) stop() {
	c.mu.Lock()
	if !c.stopped {
		c.stopped = true
		close(c.queue)
	}
	c.mu.Unlock()
	<-c.done
}

// submit queues a request and waits for it. If the context ends while the
// request is still queued, it is withdrawn; once its commit has begun the
// caller waits, since only then the outcome is known.
func (c *committer) submit(ctx context.Context, r *request) error {
	r.done = make(chan struct{})
	c.mu.RLock()
	if c.stopped {
		c.mu.RUnlock()
		return fmt.Errorf("write: the store is %w", dbadapter.ErrClosed)
	}
	select {
	case c.queue <- r:
		c.mu.RUnlock()
	case <-ctx.Done():
		c.mu.RUnlock()
		return ctx.Err()
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
	}
	if r.state.CompareAndSwap(queued, cancelled) {
		return ctx.Err()
	}
	<-r.done
	return r.err
}

// do runs a function between two commits.
func (c *committer) do(ctx context.Context, run func() error) error {
	return c.submit(ctx, &request{run: run})
}

func (c *committer) loop() {
	defer close(c.done)
	var group []*request
	for next, ok := c.receive(nil); ok; next, ok = c.receive(next) {
		group, next = c.gather(group[:0], next)
		switch {
		case len(group) == 0: // all were withdrawn
		case group[0].run != nil:
			r := group[0]
			if r.err = c.failed; r.err == nil {
				r.err = r.run()
			}
			close(r.done)
		default:
			c.underway.begin()
			c.commit(group)
			c.underway.end()
			for _, r := range group {
				close(r.done)
			}
		}
		clear(group)
	}
}

// receive returns the request left over from the last group, or waits for one.
func (c *committer) receive(left *request) (*request, bool) {
	if left != nil {
		return left, true
	}
	r, ok := <-c.queue
	return r, ok
}

// gather takes the request and those queued behind it that fit into one
// transaction. It returns the first one that does not, if any.
func (c *committer) gather(group []*request, next *request) ([]*request, *request) {
	writes, size := 0, 0
	for {
		fits := len(group) == 0 || next.run == nil && group[0].run == nil &&
			writes+len(next.items) <= dbadapter.MaxBatch && size+next.size <= dbadapter.MaxBatchBytes
		if !fits {
			return group, next
		}
		if next.state.CompareAndSwap(queued, taken) {
			group = append(group, next)
			writes, size = writes+len(next.items), size+next.size
		}
		var ok bool
		select {
		case next, ok = <-c.queue:
			if !ok {
				return group, nil
			}
		default:
			return group, nil
		}
	}
}
