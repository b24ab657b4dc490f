package replica

import (
	"context"
	"fmt"
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/reconcile"
)

// liveCells is the length of the live sketch of a set: 2^14 cells (384 KiB)
// serve 14,000 differences, and from a quarter of a million records 2^17 cells
// (3 MiB) serve 118,000.
func liveCells(records uint64) int {
	if records < 1<<18 {
		return 1 << 14
	}
	return 1 << 17
}

// Live is what a namespace holds in memory so that a sync need not scan its
// records: the first cells of its sequence, the sum of the records' digests and
// their number, brought up to date with each commit. It must be told of every
// commit, in order; it then stands at the store's sequence number.
type Live struct {
	keys reconcile.Keys

	mu      sync.Mutex // guards everything below
	sketch  *rateless.Sketch
	digest  dbadapter.Digest
	records uint64
	seq     uint64
	// undo holds the changes (seq−len(undo), seq], as far back as the oldest
	// snapshot in use needs them.
	undo      []undone
	snapshots map[*Snapshot]uint64 // sequence number of each snapshot that holds undo
}

// undone is a change, as far as it is needed to look back behind it.
type undone struct {
	index    dbadapter.Index
	old, new dbadapter.Checksum
	delta    dbadapter.Digest
	records  int
}

// New is the live sketch of an empty namespace at sequence number 0.
func New(keys reconcile.Keys) *Live {
	return &Live{keys: keys, sketch: rateless.NewSketch(keys.Cells, liveCells(0)), snapshots: map[*Snapshot]uint64{}}
}

// Load replaces the state by a scan of the snapshot. No commit may run
// meanwhile: it is for start-up and for an audit that found drift. Like all
// sketching by scan it uses all processors, but within iblt and within the
// call: this package starts nothing that outlives a call. tick is as in
// Snapshot.
func (l *Live) Load(ctx context.Context, snap dbadapter.Snapshot, tick func() error) error {
	var digest dbadapter.Digest
	var records uint64
	for r, err := range ticking(tick, snap.Scan(ctx, nil, nil)) {
		if err != nil {
			return fmt.Errorf("rebuilding the digest: %w", err)
		}
		digest = digest.Add(r.Digest)
		records++
	}
	sketch := rateless.NewSketch(l.keys.Cells, liveCells(records))
	if err := sketch.AddAll(coded.Pairs(ticking(tick, snap.Pairs(ctx)))); err != nil {
		return fmt.Errorf("rebuilding the sketch: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sketch, l.digest, l.records, l.seq, l.undo = sketch, digest, records, snap.Seq(), nil
	return nil
}

// Observe follows one commit. Its signature is that of the store's observer.
func (l *Live) Observe(changes []dbadapter.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range changes {
		c := &changes[i]
		l.sketch.Replace(coded.Pair(c.Index, c.Old), coded.Pair(c.Index, c.New))
		l.digest = l.digest.Add(c.Delta)
		l.records += uint64(c.Records)
		l.seq = c.Seq
		if len(l.snapshots) > 0 {
			l.undo = append(l.undo, undone{c.Index, c.Old, c.New, c.Delta, c.Records})
		}
	}
	if len(l.snapshots) == 0 || len(l.undo) > maxUndo {
		// It must never hold a part that does not end at seq. The
		// snapshots that are left learn of the cut by their sequence number.
		l.undo = nil
	}
}

// State is the digest, the number of records and the sequence number as of the
// last commit.
func (l *Live) State() (digest dbadapter.Digest, records, seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.digest, l.records, l.seq
}

// Cells is the length of the live sketch.
func (l *Live) Cells() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sketch.Len()
}

// Grow lengthens the live sketch to what the number of records asks for, by
// a scan of a snapshot while commits go on. It reports whether it did. tick is
// as in Snapshot.
func (l *Live) Grow(ctx context.Context, ns dbadapter.Namespace, tick func() error) (bool, error) {
	l.mu.Lock()
	from, to := l.sketch.Len(), liveCells(l.records)
	l.mu.Unlock()
	if to <= from {
		return false, nil
	}
	s := &Snapshot{live: l}
	l.hold(s)
	defer l.release(s)
	snap, err := ns.Snapshot()
	if err != nil {
		return false, err
	}
	defer snap.Close()
	tail := rateless.NewWindow(l.keys.Cells, from, to)
	if err := tail.AddAll(coded.Pairs(ticking(tick, snap.Pairs(ctx)))); err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	since, err := l.since(snap.Seq())
	if err != nil {
		return false, err
	}
	for _, c := range since {
		tail.Replace(coded.Pair(c.index, c.old), coded.Pair(c.index, c.new))
	}
	if l.sketch.Len() != from {
		return false, nil // another call was faster
	}
	l.sketch.Append(tail)
	return true, nil
}

// hold makes l remember all changes from now on for s.
func (l *Live) hold(s *Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.snapshots[s] = l.seq
}

// release forgets what only s needed.
func (l *Live) release(s *Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, held := l.snapshots[s]; !held {
		return
	}
	delete(l.snapshots, s)
	l.trim()
}

func (l *Live) trim() {
	if len(l.snapshots) == 0 {
		l.undo = nil
		return
	}
	oldest := l.seq
	for _, seq := range l.snapshots {
		oldest = min(oldest, seq)
	}
	if n := l.seq - oldest; n < uint64(len(l.undo)) {
		l.undo = l.undo[uint64(len(l.undo))-n:]
	}
}

// since returns the changes after seq, oldest first. l.mu must be held; the
// slice stays valid without it, since entries are only ever appended.
func (l *Live) since(seq uint64) ([]undone, error) {
	n := l.seq - seq
	if seq > l.seq || n > uint64(len(l.undo)) {
		return nil, fmt.Errorf("%w: %d records were written while the sketch was being read", reconcile.ErrBusy, n)
	}
	return l.undo[uint64(len(l.undo))-n:], nil
}
