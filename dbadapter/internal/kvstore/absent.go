package kvstore

import (
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
)

// absent remembers indices under which a reader has found nothing, so that the commit
// of what it then writes need not look there again: most writes are of new keys, and a
// look-up takes as long as the write. An index stays until a commit touches it.
type absent struct {
	mu sync.Mutex // guards what follows
	// seq is that of the last commit, as of which there is nothing under any of the
	// indices.
	seq     uint64
	indices map[dbadapter.Index]struct{}
}

// mostAbsent bounds the memory to about 300 KiB, and holds two batches.
const mostAbsent = 2*dbadapter.MaxBatch + 64

// note takes indices under which a snapshot has nothing. One that is older than the
// last commit does not count: that may have written there.
func (a *absent) note(seq uint64, indices ...dbadapter.Index) {
	if len(indices) == 0 || len(indices) > mostAbsent {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if seq != a.seq {
		return
	}
	if len(a.indices)+len(indices) > mostAbsent {
		clear(a.indices) // of look-ups that no write has followed
	}
	if a.indices == nil {
		a.indices = map[dbadapter.Index]struct{}{}
	}
	for _, i := range indices {
		a.indices[i] = struct{}{}
	}
}

// others are the indices under which there may be something. The committer alone
// calls it.
func (a *absent) others(indices []dbadapter.Index) []dbadapter.Index {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.indices) == 0 {
		return indices
	}
	rest := make([]dbadapter.Index, 0, len(indices))
	for _, i := range indices {
		if _, ok := a.indices[i]; !ok {
			rest = append(rest, i)
		}
	}
	return rest
}

// committed follows a commit, before another one is decided.
func (a *absent) committed(seq uint64, changes []dbadapter.Change) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seq = seq
	for i := range changes {
		delete(a.indices, changes[i].Index)
	}
}
