package kvstore

import (
	"bytes"
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/grouped"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// readTxn is a read transaction as of one commit. All snapshots opened before the
// next commit share it, so that opening one neither reads the database nor
// waits for a commit in progress.
type readTxn struct {
	txn  kv.View
	refs atomic.Int64
}

func newReadTxn(db kv.DB) *readTxn {
	r := &readTxn{txn: db.View()}
	r.refs.Store(1)
	return r
}

// lastCommit is the last commit, to be released.
func (s *Store) lastCommit() *readTxn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last.refs.Add(1)
	return s.last
}

func (r *readTxn) release() {
	if r.refs.Add(-1) == 0 {
		r.txn.Close()
	}
}

type snapshot struct {
	namespace *namespace
	seq       uint64

	mu        sync.Mutex // guards what follows; the store's Close takes it too
	read      *readTxn   // nil once closed
	iterators map[kv.Iterator]struct{}
	order     []int // scratch of Lookup
}

func (n *namespace) Snapshot() (dbadapter.Snapshot, error) {
	s, err := n.snapshot()
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (n *namespace) snapshot() (*snapshot, error) {
	if err := n.Life.Enter("open a snapshot", n.ID); err != nil {
		return nil, err
	}
	defer n.Life.Leave()
	n.store.mu.Lock()
	if n.store.last == nil {
		n.store.mu.Unlock()
		return nil, fmt.Errorf("open a snapshot: %w: the store is being opened anew, or could not be", dbadapter.ErrAway)
	}
	s := &snapshot{namespace: n, seq: n.Shown.Seq, read: n.store.last}
	s.read.refs.Add(1)
	n.store.mu.Unlock()
	n.Life.Opened(s)
	return s, nil
}

// locked takes the lock if the snapshot is open.
func (s *snapshot) locked(what string) error {
	s.mu.Lock()
	if s.read == nil {
		s.mu.Unlock()
		return fmt.Errorf("%s: the snapshot is %w", what, dbadapter.ErrClosed)
	}
	return nil
}

func (s *snapshot) Seq() uint64 { return s.seq }

// meta is the namespace's head as of the snapshot.
func (s *snapshot) meta(what string) (m layout.Meta, err error) {
	if err := s.locked(what); err != nil {
		return m, err
	}
	defer s.mu.Unlock()
	number := s.namespace.Number
	b, err := kv.Get(s.read.txn, metaKey(number))
	if err != nil {
		return m, err
	}
	return m, m.Decode(b, number)
}

func (s *snapshot) Get(key []byte) (dbadapter.Record, error) {
	if err := s.locked("get"); err != nil {
		return dbadapter.Record{}, err
	}
	defer s.mu.Unlock()
	n := s.namespace
	index := n.Hasher.Index(key)
	r, err := n.record(s.read.txn, bytes.Clone(key))
	empty := false
	if err == nil {
		empty, err = n.check(s.read.txn, index, key, r)
	}
	if err != nil {
		return dbadapter.Record{}, err
	}
	if empty {
		n.cacheRead(s.seq, []dbadapter.Index{index}, make([]commit.Loaded, 1))
	}
	if r == nil {
		return dbadapter.Record{}, fmt.Errorf("get %s: %w", damage.Quote(key), dbadapter.ErrNotFound)
	}
	return r.Record, nil
}

func (s *snapshot) Lookup(indices []dbadapter.Index, sums []dbadapter.Checksum) error {
	if err := s.locked("look up"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	// In the order of the indices, neighbours are found in the same blocks.
	s.order = s.order[:0]
	for i := range indices {
		s.order = append(s.order, i)
	}
	slices.SortFunc(s.order, func(a, b int) int { return cmp.Compare(indices[a], indices[b]) })
	var failed atomic.Pointer[error]
	inParallel(len(indices), func(from, to int) {
		var key [prefixSize + layout.NumberSize]byte
		for _, i := range s.order[from:to] {
			sum, err := s.sum(appendIndexKey(key[:0], s.namespace.Number, indices[i]), indices[i])
			if err != nil {
				failed.Store(&err)
				return
			}
			sums[i] = sum
		}
	})
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// sum reads the checksum under one index, given its key.
func (s *snapshot) sum(key []byte, index dbadapter.Index) (sum dbadapter.Checksum, err error) {
	if index > maxIndex {
		return 0, nil // its key would be another's
	}
	_, err = s.read.txn.Get(key, func(entry []byte) error {
		b, err := readBucket(entry, s.namespace.Number, index)
		sum = b.sum
		return err
	})
	return sum, err
}

// inParallel does a piece of work in as many parts as there are processors, up
// to 4, when each has at least 16 steps: some tens of microseconds, or reads of a disk.
func inParallel(n int, part func(from, to int)) {
	const least, most = 16, 4
	if n == 0 {
		return
	}
	parts := min(n/least, most, runtime.GOMAXPROCS(0))
	if parts <= 1 {
		part(0, n)
		return
	}
	var all sync.WaitGroup
	for i := range parts {
		all.Go(func() { part(n*i/parts, n*(i+1)/parts) })
	}
	all.Wait()
}

func (s *snapshot) Bucket(index dbadapter.Index) ([]dbadapter.Hashed, error) {
	buckets, err := s.buckets([]dbadapter.Index{index}, false)
	if err != nil {
		return nil, err
	}
	return buckets[0], nil
}

func (s *snapshot) Buckets(indices []dbadapter.Index) ([][]dbadapter.Hashed, error) {
	return s.buckets(indices, true)
}

// buckets reads the records under each of the indices. shared: the caller does not change
// them, so that the commit of what it may write next can use them, too.
func (s *snapshot) buckets(indices []dbadapter.Index, shared bool) ([][]dbadapter.Hashed, error) {
	if err := s.locked("read buckets"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	known, _ := slices.BinarySearch(indices, maxIndex+1) // the keys of others would be another's
	loaded := s.namespace.heldAll(s.read.txn, indices[:known])
	buckets, err := grouped.Records(loaded)
	if err != nil {
		return nil, err
	}
	if shared || len(loaded) == 1 && len(loaded[0].Held) == 0 {
		s.namespace.cacheRead(s.seq, indices[:known], loaded)
	}
	return append(buckets, make([][]dbadapter.Hashed, len(indices)-known)...), nil
}

func (s *snapshot) Close() error {
	s.namespace.Life.Closed(s)
	s.end()
	return nil
}

// end releases the transaction and whatever iterates over it.
func (s *snapshot) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read == nil {
		return
	}
	for it := range s.iterators {
		it.Close()
	}
	s.iterators = nil
	s.read.release()
	s.read = nil
}
