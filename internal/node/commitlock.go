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

func (l *commitLock) Unlock()  { l.lock.Unlock() }
func (l *commitLock) RUnlock() { l.lock.RUnlock() }

// single is RLock for a single write.
func (l *commitLock) single() {
	l.singles.Add(1)
	l.RLock()
}

// wanted reports whether others wait.
func (l *commitLock) wanted() bool { return l.waiting.Load() > 0 }
