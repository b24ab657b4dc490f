// Package queue lets the callers of a store share its commits. Each caller queues a
// batch. One goroutine takes what is queued, up to the bounds of one batch. It commits
// that as one transaction with one write to the disk (group commit; DeWitt et al.,
// "Implementation techniques for main memory database systems", 1984). While it waits
// for the disk, the next group gathers.
//
// A commit has two steps: it is prepared, and then it lands. A large group is prepared
// while the one before lands, if that was large, too: neither would wait for others to
// share its commit.
package queue

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/syncd-io/syncd/dbadapter"
)

// Queue is the single writer of a store, whose batches are of type B. Make it with
// Start.
type Queue[B any] struct {
	commit Commit[B]
	queue  chan *Request[B]
	done   chan struct{} // closed when the goroutine has ended

	mu      sync.RWMutex // held for reading while sending to queue
	stopped bool         // guarded by mu
}

// Commit prepares the commit of a group, and returns what lands it, or lands it: nil. Each
// request has its Err once it has landed. Where a group is large, the one before may be
// landing still: wait returns when it is not, and a group lands only then.
type Commit[B any] func(group []*Request[B], wait func()) (land func())

// Request is a batch that waits for its commit.
type Request[B any] struct {
	Batch B
	// Writes and Size are what the batch takes of a group's bounds,
	// dbadapter.MaxBatch and dbadapter.MaxBatchBytes.
	Writes, Size int
	// Err is what Submit returns; the commit sets it.
	Err error

	run   func() error // if not nil, it runs in place of a commit
	state atomic.Int32
	done  chan struct{}
}

// States of a request. The goroutine that moves it on from queued owns it.
const (
	queued = iota
	taken
	cancelled
)

// length bounds the requests that wait; the callers of more wait to be queued.
const length = 1024

// Large is from how many writes on a group is large.
const Large = 512

// Start starts the goroutine that commits.
func Start[B any](commit Commit[B]) *Queue[B] {
	q := &Queue[B]{commit: commit, queue: make(chan *Request[B], length), done: make(chan struct{})}
	go q.loop()
	return q
}

// Stop ends the goroutine after what is queued. Idempotent.
func (q *Queue[B]) Stop() {
	q.mu.Lock()
	if !q.stopped {
		q.stopped = true
		close(q.queue)
	}
	q.mu.Unlock()
	<-q.done
}

// Len is how many requests wait.
func (q *Queue[B]) Len() int { return len(q.queue) }

// Submit queues a request and waits for it. If the context ends while the request is
// still queued, it is withdrawn. Once its commit has begun the caller waits, since only
// then the outcome is known.
func (q *Queue[B]) Submit(ctx context.Context, r *Request[B]) error {
	r.done = make(chan struct{})
	q.mu.RLock()
	if q.stopped {
		q.mu.RUnlock()
		return fmt.Errorf("write: the store is %w", dbadapter.ErrClosed)
	}
	select {
	case q.queue <- r:
		q.mu.RUnlock()
	case <-ctx.Done():
		q.mu.RUnlock()
		return ctx.Err()
	}
	select {
	case <-r.done:
		return r.Err
	case <-ctx.Done():
	}
	if r.state.CompareAndSwap(queued, cancelled) {
		return ctx.Err()
	}
	<-r.done
	return r.Err
}

// Do runs a function between two commits.
func (q *Queue[B]) Do(ctx context.Context, run func() error) error {
	return q.Submit(ctx, &Request[B]{run: run})
}

func (q *Queue[B]) loop() {
	defer close(q.done)
	var landing chan struct{} // closed when the last large group has landed
	wait := func() {
		if landing != nil {
			<-landing
			landing = nil
		}
	}
	defer wait()
	for next, ok := q.receive(nil); ok; next, ok = q.receive(next) {
		if next.Writes < Large {
			wait()
		}
		var group []*Request[B]
		group, next = q.gather(next)
		switch {
		case len(group) == 0: // all were withdrawn
			continue
		case group[0].run != nil:
			wait() // it came behind a large batch that was withdrawn
			group[0].Err = group[0].run()
			finish(group)
			continue
		}
		land := q.commit(group, wait)
		if land == nil {
			finish(group)
			continue
		}
		wait()
		landed := make(chan struct{})
		landing = landed
		go func() {
			defer close(landed)
			land()
			finish(group)
		}()
	}
}

// finish ends the waiting of a group's callers.
func finish[B any](group []*Request[B]) {
	for _, r := range group {
		close(r.done)
	}
}

// receive returns the request left over from the last group, or waits for one.
func (q *Queue[B]) receive(left *Request[B]) (*Request[B], bool) {
	if left != nil {
		return left, true
	}
	r, ok := <-q.queue
	return r, ok
}

// gather takes the request and those queued behind it that fit into one
// transaction. It returns the first one that does not, if any.
func (q *Queue[B]) gather(next *Request[B]) (group []*Request[B], left *Request[B]) {
	writes, size := 0, 0
	for {
		fits := len(group) == 0 || next.run == nil && group[0].run == nil &&
			writes+next.Writes <= dbadapter.MaxBatch && size+next.Size <= dbadapter.MaxBatchBytes
		if !fits {
			return group, next
		}
		if next.state.CompareAndSwap(queued, taken) {
			group = append(group, next)
			writes, size = writes+next.Writes, size+next.Size
		}
		var ok bool
		select {
		case next, ok = <-q.queue:
			if !ok {
				return group, nil
			}
		default:
			return group, nil
		}
	}
}
