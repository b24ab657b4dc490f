package badgerkv

import (
	"sync"

	"github.com/dgraph-io/badger/v4"
)

// times gives commits their times and views theirs. Badger is opened in its managed
// mode, in which the caller does so: a commit then needs no transaction of Badger's (see
// commit.go), and to begin one does not wait for the commit before.
type times struct {
	badger *badger.DB

	committing sync.Mutex // held while a commit runs: they come in the order of their times
	next       uint64     // the time of the next commit; guarded by committing

	mu   sync.Mutex     // guards what follows
	last uint64         // of the last commit that is there
	open map[uint64]int // how many views there are as of a time
}

func (t *times) start(db *badger.DB) {
	last := db.MaxVersion()
	t.badger, t.next, t.last, t.open = db, last+1, last, map[uint64]int{}
	db.SetDiscardTs(last)
}

// commit runs a commit with its time, and lets views that are opened afterwards see it.
// The time of one that fails is not used again.
func (t *times) commit(run func(time uint64) error) error {
	t.committing.Lock()
	defer t.committing.Unlock()
	time := t.next
	t.next++
	if err := run(time); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = time
	t.discard()
	return nil
}

// view is a view as of the last commit.
func (t *times) view(d *db) view {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[t.last]++
	return view{d, t.badger.NewTransactionAt(t.last, false)}
}

// closed follows the end of a view.
func (t *times) closed(time uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[time]--; t.open[time] == 0 {
		delete(t.open, time)
		t.discard()
	}
}

// discard lets Badger drop the versions that no view sees any more.
func (t *times) discard() {
	oldest := t.last
	for time := range t.open {
		oldest = min(oldest, time)
	}
	t.badger.SetDiscardTs(oldest)
}

// newest is a transaction of Badger's that sees everything, for those that read tables
// rather than entries.
func newest(db *badger.DB) *badger.Txn { return db.NewTransactionAt(^uint64(0), false) }

// view is a transaction of Badger's that reads.
type view struct {
	db  *db
	txn *badger.Txn
}

func (v view) Close() {
	if v.db.lost() == nil { // else one of its iterators may be half made
		v.txn.Discard()
	}
	v.db.times.closed(v.txn.ReadTs())
}
