package kvstore

import (
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
)

// readCache remembers what readers have found under indices, or that there is nothing, so
// that the commit of what they then write need not look there again: a look-up takes as
// long as the write. An index stays until a commit touches it.
type readCache struct {
	mu sync.Mutex // guards what follows
	// seq is that of the last commit, as of which found is what is held.
	seq   uint64
	found map[dbadapter.Index][]commit.Held // empty: nothing is held
	bytes int                               // of the records in found
}

// mostCached and mostCachedBytes bound the memory to some 300 KiB for the indices, of two
// batches, and as much again as one batch has for the records.
const (
	mostCached      = 2*dbadapter.MaxBatch + 64
	mostCachedBytes = dbadapter.MaxBatchBytes
)

// note takes what a snapshot holds under indices. One that is older than the last commit
// does not count: that may have written there.
func (l *readCache) note(seq uint64, indices []dbadapter.Index, loaded []commit.Loaded) {
	if len(indices) == 0 || len(indices) > mostCached {
		return
	}
	bytes := 0
	for i := range loaded {
		bytes += weightOf(loaded[i].Held)
	}
	if bytes > mostCachedBytes {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if seq != l.seq {
		return
	}
	if len(l.found)+len(indices) > mostCached || l.bytes+bytes > mostCachedBytes {
		clear(l.found) // of look-ups that no write has followed
		l.bytes = 0
	}
	if l.found == nil {
		l.found = map[dbadapter.Index][]commit.Held{}
	}
	for i, index := range indices {
		l.bytes += weightOf(loaded[i].Held) - weightOf(l.found[index])
		l.found[index] = loaded[i].Held
	}
}

// load sets what is held under those of the indices that are in rest, as far as it is
// known, and returns those of which it is not. The committer alone calls it.
func (l *readCache) load(indices []dbadapter.Index, loaded []commit.Loaded, rest []dbadapter.Index) (unknown []dbadapter.Index) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.found) == 0 {
		return rest
	}
	at := 0
	for _, index := range rest {
		for indices[at] != index {
			at++
		}
		held, ok := l.found[index]
		if loaded[at].Held = held; !ok {
			unknown = append(unknown, index)
		}
	}
	return unknown
}

// committed follows a commit, before another one is decided.
func (l *readCache) committed(seq uint64, changes []dbadapter.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq = seq
	for i := 0; len(l.found) > 0 && i < len(changes); i++ {
		index := changes[i].Index
		l.bytes -= weightOf(l.found[index])
		delete(l.found, index)
	}
}

// restart forgets all: what is held is that of a store that was opened, or made anew, and
// has seq as its last commit.
func (l *readCache) restart(seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.found)
	l.seq, l.bytes = seq, 0
}

func weightOf(held []commit.Held) (n int) {
	for i := range held {
		n += held[i].Record.Weight()
	}
	return n
}

// cacheRead takes what a snapshot holds under indices, but for those of which the filter
// says that nothing was ever there: the commit asks it again in less time than it takes to
// remember them.
func (n *namespace) cacheRead(seq uint64, indices []dbadapter.Index, loaded []commit.Loaded) {
	if n.written.layers.Load() == nil {
		n.cache.note(seq, indices, loaded)
		return
	}
	var (
		asked []dbadapter.Index
		found []commit.Loaded
	)
	for i, index := range indices {
		if len(loaded[i].Held) > 0 || n.written.mayHold(index) {
			asked, found = append(asked, index), append(found, loaded[i])
		}
	}
	n.cache.note(seq, asked, found)
}

// loadAll sets what is held under those of the indices that are in rest. Both ascend.
func (n *namespace) loadAll(txn *readTxn, indices []dbadapter.Index, loaded []commit.Loaded, rest []dbadapter.Index) {
	rest = n.cache.load(indices, loaded, rest)
	at := 0
	for i, read := range n.heldAll(txn.txn, rest) {
		for indices[at] != rest[i] {
			at++
		}
		loaded[at] = read
	}
}
