package kvstore

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// underway is the commit that runs now. Work in the background waits for its end
// between two pieces: a copy that keeps a processor busy costs a commit far more
// than its share, since a commit is a chain of short steps of several goroutines,
// each of which waits for a processor anew (docs/PERFORMANCE.md, "Backups").
type underway struct{ commit atomic.Pointer[chan struct{}] }

// begin begins a commit; ended ends it. Another one may begin before.
func (u *underway) begin() (ended func()) {
	c := make(chan struct{})
	u.commit.Store(&c)
	return func() {
		u.commit.CompareAndSwap(&c, nil)
		close(c)
	}
}

// mostWait bounds how long one piece waits, so that a copy goes on beside commits
// that follow one another without a pause, or that a slow disk holds up.
const mostWait = 2 * time.Millisecond

// giveWay waits until the commit that runs now, if there is one, has ended, for
// mostWait, or for the context. If no commit runs, it yields the processor to goroutines
// that wait for one: writes of another store, for example.
func (u *underway) giveWay(ctx context.Context) {
	ended := u.commit.Load()
	if ended == nil {
		runtime.Gosched()
		return
	}
	bound := time.NewTimer(mostWait)
	defer bound.Stop()
	select {
	case <-*ended:
	case <-bound.C:
	case <-ctx.Done():
	}
}
