package node

import (
	"sync"
	"sync/atomic"
)

// commitLock is a lock that tells its holders of one another: whether others wait for
// it, and whether single writes have come. Each that waits gets it in turn, as with
// sync.RWMutex.
type commitLock struct {
	lock    sync.RWMutex
	waiting atomic.Int32
	// singles counts the single writes that have begun.
	singles atomic.Uint64
}

func (l *commitLock) Lock() {
	l.waiting.Add(1)
	l.lock.Lock()
	l.waiting.Add(-1)
}

func (l *commitLock) RLock() {
	l.waiting.Add(1)
	l.lock.RLock()
	l.waiting.Add(-1)
}

func (l *commitLock) Unlock()        { l.lock.Unlock() }
func (l *commitLock) RUnlock()       { l.lock.RUnlock() }
func (l *commitLock) TryLock() bool  { return l.lock.TryLock() }
func (l *commitLock) TryRLock() bool { return l.lock.TryRLock() }

// single is RLock for a single write.
func (l *commitLock) single() {
	l.singles.Add(1)
	l.RLock()
}

// wanted reports whether others wait.
func (l *commitLock) wanted() bool { return l.waiting.Load() > 0 }

// pace sizes the slices that records from peers are committed in, and the pieces in
// which their signatures are verified. A single write that comes meanwhile waits for the
// slice that is being committed, and shares its own transaction with another one, so that
// slices are small while such writes come, and large, which takes less in all, while they
// do not.
type pace struct {
	mu   sync.Mutex // guards what follows
	size int        // of the last slice; 0 before the first
	seen uint64     // commitLock.singles as of then
}

// next is the size of the next slice, given how many single writes have begun.
func (p *pace) next(singles uint64, least, most int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.size == 0:
		p.size = most
	case singles != p.seen:
		p.size = least
	default:
		p.size = min(2*p.size, most)
	}
	p.seen = singles
	return p.size
}
