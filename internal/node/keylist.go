package node

import (
	"sync"

	"github.com/syncd-io/syncd/reconcile"
)

// KeyList is where a dry run lists the keys that differ. Its parts list theirs at the same
// time, in any order.
type KeyList struct {
	// Limit is how many keys are listed at most; 0 means all.
	Limit int
	// Each takes a key. It may be called from several goroutines at once, and may
	// wait. A wait calls tick at least every few seconds, and ends with its error.
	Each func(d reconcile.KeyDifference, tick func() error) error

	mu     sync.Mutex // guards what follows
	listed int
	more   bool // a key was not listed
}

// take lists a key, unless the list is full.
func (l *KeyList) take(d reconcile.KeyDifference, tick func() error) (bool, error) {
	l.mu.Lock()
	if l.Limit > 0 && l.listed == l.Limit {
		l.more = true
		l.mu.Unlock()
		return false, nil
	}
	l.listed++
	l.mu.Unlock()
	return true, l.Each(d, tick)
}

// full reports whether a key was not listed any more: further parts are of no use.
func (l *KeyList) full() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.more
}
