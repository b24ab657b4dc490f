package syncing

import (
	"sync"

	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Ask is what an initiator wants of a sync. The zero value syncs all, both ways.
type Ask struct {
	Prefix []byte
	// Span narrows the sync to some ranges: it is a part of a large one.
	Span      wire.Span
	Direction wire.Direction
	Method    wire.Method
	DryRun    bool
	// Keys, if not nil, lists the keys that differ: of a dry run.
	Keys *KeyList
	// Control asks for a sync of the control namespace instead of the data.
	Control bool
	// ListsMayDiffer syncs the data also where the two have different lists of
	// members.
	ListsMayDiffer bool
}

// Whole reports whether the sync is about all records.
func (a *Ask) Whole() bool { return len(a.Prefix) == 0 && !a.Part() }

// Part reports whether the sync is a part of a large one.
func (a *Ask) Part() bool { return a.Span != (wire.Span{}) }

// Moves reports whether the sync moves what differs in the data. It may do so in
// all of it, or in a prefix, and not in a part of a large sync.
func (a *Ask) Moves() bool { return !a.Control && !a.DryRun && !a.Part() }

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

// Take lists a key, unless the list is full.
func (l *KeyList) Take(d reconcile.KeyDifference, tick func() error) (bool, error) {
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
