package reconcile

import (
	"context"
	"fmt"
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
)

// KeptCells is the length of the kept sketch of a set: 2^14 cells (384 KiB)
// serve 14,000 differences, and from a quarter of a million records 2^17 cells
// (3 MiB) serve 118,000.
func KeptCells(records uint64) int {
	if records < 1<<18 {
		return 1 << 14
	}
	return 1 << 17
}

// Kept is what a namespace keeps in memory so that a sync need not look at
// its records: the first cells of its sequence, the sum of its digests and
// their number, brought up to date with each commit. It must be told of every
// commit, in order; it then stands at the store's sequence number.
type Kept struct {
	mu      sync.Mutex // guards everything below
	sketch  *rateless.Sketch
	digest  dbadapter.Digest
	records uint64
	seq     uint64
	// undo holds the changes (seq−len(undo), seq], as far back as the oldest
	// view in use needs them.
	undo  []undone
	views map[*View]uint64 // sequence number of each view that holds undo
}

// undone is a change, as far as it is needed to look back behind it.
type undone struct {
	index    dbadapter.Index
	old, new dbadapter.Checksum
	delta    dbadapter.Digest
	records  int
}

// NewKept is the kept state of an empty namespace at sequence number 0, under
// the key of its cells.
func NewKept(key rateless.Key) *Kept {
	return &Kept{sketch: rateless.NewSketch(key, KeptCells(0)), views: map[*View]uint64{}}
}

// Load replaces the state by a scan of the snapshot. No commit may run
// meanwhile: it is for start-up and for an audit that found drift. Like all
// sketching by scan it uses all processors, but within rateless and within the
// call: this package starts nothing that outlives a call.
func (k *Kept) Load(ctx context.Context, key rateless.Key, snap dbadapter.Snapshot, hasher dbadapter.Hasher) error {
	var digest dbadapter.Digest
	var records uint64
	for r, err := range snap.Scan(ctx, nil, nil) {
		if err != nil {
			return fmt.Errorf("rebuilding the digest: %w", err)
		}
		digest = digest.Add(hasher.Digest(&r))
		records++
	}
	sketch := rateless.NewSketch(key, KeptCells(records))
	if err := sketch.AddAll(coded.Pairs(snap.Pairs(ctx))); err != nil {
		return fmt.Errorf("rebuilding the sketch: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sketch, k.digest, k.records, k.seq, k.undo = sketch, digest, records, snap.Seq(), nil
	return nil
}

// Observe follows one commit. Its signature is that of the store's observer.
func (k *Kept) Observe(changes []dbadapter.Change) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range changes {
		c := &changes[i]
		k.sketch.Replace(coded.Pair(c.Index, c.Old), coded.Pair(c.Index, c.New))
		k.digest = k.digest.Add(c.Delta)
		k.records += uint64(c.Records)
		k.seq = c.Seq
		if len(k.views) > 0 {
			k.undo = append(k.undo, undone{c.Index, c.Old, c.New, c.Delta, c.Records})
		}
	}
	if len(k.views) == 0 || len(k.undo) > maxUndo {
		// It must never hold a part that does not end at seq. The views that
		// are left learn of the cut by their sequence number.
		k.undo = nil
	}
}

// State is the digest, the number of records and the sequence number as of the
// last commit.
func (k *Kept) State() (digest dbadapter.Digest, records, seq uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.digest, k.records, k.seq
}

// Cells is the length of the kept sketch.
func (k *Kept) Cells() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sketch.Len()
}

// Grow lengthens the kept sketch to what the number of records asks for, by
// a scan of a snapshot while commits go on. It reports whether it did.
func (k *Kept) Grow(ctx context.Context, key rateless.Key, ns dbadapter.Namespace) (bool, error) {
	k.mu.Lock()
	from, to := k.sketch.Len(), KeptCells(k.records)
	k.mu.Unlock()
	if to <= from {
		return false, nil
	}
	v := &View{kept: k}
	k.hold(v)
	defer k.release(v)
	snap, err := ns.Snapshot()
	if err != nil {
		return false, err
	}
	defer snap.Close()
	tail := rateless.NewWindow(key, from, to)
	if err := tail.AddAll(coded.Pairs(snap.Pairs(ctx))); err != nil {
		return false, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	since, err := k.since(snap.Seq())
	if err != nil {
		return false, err
	}
	for _, c := range since {
		tail.Replace(coded.Pair(c.index, c.old), coded.Pair(c.index, c.new))
	}
	if k.sketch.Len() != from {
		return false, nil // another call was faster
	}
	k.sketch.Append(tail)
	return true, nil
}

// hold makes k remember all changes from now on for v.
func (k *Kept) hold(v *View) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.views[v] = k.seq
}

// release forgets what only v needed.
func (k *Kept) release(v *View) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, held := k.views[v]; !held {
		return
	}
	delete(k.views, v)
	k.trim()
}

func (k *Kept) trim() {
	if len(k.views) == 0 {
		k.undo = nil
		return
	}
	oldest := k.seq
	for _, seq := range k.views {
		oldest = min(oldest, seq)
	}
	if n := k.seq - oldest; n < uint64(len(k.undo)) {
		k.undo = k.undo[uint64(len(k.undo))-n:]
	}
}

// since returns the changes after seq, oldest first. k.mu must be held; the
// slice stays valid without it, since entries are only ever appended.
func (k *Kept) since(seq uint64) ([]undone, error) {
	n := k.seq - seq
	if seq > k.seq || n > uint64(len(k.undo)) {
		return nil, fmt.Errorf("%w: %d records were written while the sketch was being read", ErrBusy, n)
	}
	return k.undo[uint64(len(k.undo))-n:], nil
}
