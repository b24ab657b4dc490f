package reconcile

import (
	"context"
	"iter"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
)

// View is a Replica of a whole namespace as of one commit. Its cells are the
// kept ones, taken back behind the commits that came since: with a cell or a
// checksum read live, no decode would end once a key has been rewritten.
type View struct {
	ctx       context.Context // the sync's; a Replica's methods are steps of it
	kept      *Kept
	key       rateless.Key
	hasher    dbadapter.Hasher
	snap      dbadapter.Snapshot
	door      Door
	digest    dbadapter.Digest
	records   uint64
	estimator rateless.Estimator
	// beyond holds the cells past the kept ones, made by a scan.
	beyond *rateless.Sketch
}

var _ Replica = (*View)(nil)

// View opens a view of the namespace that k follows. It must be closed.
func (k *Kept) View(ctx context.Context, ns dbadapter.Namespace, key rateless.Key, hasher dbadapter.Hasher, door Door) (*View, error) {
	v := &View{ctx: ctx, kept: k, key: key, hasher: hasher, door: door}
	// First hold the changes, then open the snapshot: it can only be newer,
	// since a store tells observers and snapshots of a commit in one step.
	k.hold(v)
	snap, err := ns.Snapshot()
	if err != nil {
		k.release(v)
		return nil, err
	}
	v.snap = snap
	k.mu.Lock()
	defer k.mu.Unlock()
	since, err := k.since(snap.Seq())
	if err != nil {
		delete(k.views, v)
		k.trim()
		snap.Close()
		return nil, err
	}
	v.digest, v.records = k.digest, k.records
	for _, c := range since {
		v.digest = v.digest.Sub(c.delta)
		v.records -= uint64(c.records)
	}
	v.estimator = k.sketch.Estimator()
	k.views[v] = snap.Seq()
	k.trim()
	return v, nil
}

// Close releases the view. Idempotent.
func (v *View) Close() error {
	v.kept.release(v)
	return v.snap.Close()
}

// Records implements Replica.
func (v *View) Records() uint64 { return v.records }

// Digest implements Replica.
func (v *View) Digest() dbadapter.Digest { return v.digest }

// Key implements Replica.
func (v *View) Key() rateless.Key { return v.key }

// Hasher implements Replica.
func (v *View) Hasher() dbadapter.Hasher { return v.hasher }

// Estimator implements Replica. It may be some commits newer than the view: an
// estimate bears that.
func (v *View) Estimator() rateless.Estimator { return v.estimator }

// Cells implements Replica.
func (v *View) Cells(from, to int) ([]rateless.Cell, error) {
	v.kept.mu.Lock()
	kept := v.kept.sketch.Len()
	var live *rateless.Sketch
	var since []undone
	var err error
	if from < kept {
		live = v.kept.sketch.Window(from, min(to, kept))
		since, err = v.kept.since(v.snap.Seq())
	}
	v.kept.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var cells []rateless.Cell
	if live != nil {
		for i := len(since) - 1; i >= 0; i-- {
			c := &since[i]
			live.Replace(coded.Pair(c.index, c.new), coded.Pair(c.index, c.old))
		}
		if cells, err = live.Cells(live.From(), live.From()+live.Len()); err != nil {
			return nil, err
		}
	}
	if to <= kept {
		return cells, nil
	}
	tail, err := v.scanned(max(from, kept), to)
	return append(cells, tail...), err
}

// scanned returns cells beyond the kept ones. A scan makes many at once, so
// that few scans serve a long stream.
func (v *View) scanned(from, to int) ([]rateless.Cell, error) {
	b := v.beyond
	if b == nil || from < b.From() || to > b.From()+b.Len() {
		b = rateless.NewWindow(v.key, from, max(to, min(4*from, MaxCells)))
		if err := b.AddAll(coded.Pairs(v.snap.Pairs(v.ctx))); err != nil {
			return nil, err
		}
		v.beyond = b
	}
	return b.Cells(from, to)
}

// Decoded implements Replica: changes need not be held for it any longer.
func (v *View) Decoded() {
	v.kept.release(v)
	v.beyond = nil
}

// Lookup implements Replica.
func (v *View) Lookup(indices []dbadapter.Index, sums []dbadapter.Checksum) error {
	return v.snap.Lookup(indices, sums)
}

// Bucket implements Replica.
func (v *View) Bucket(index dbadapter.Index) ([]dbadapter.Record, error) { return v.snap.Bucket(index) }

// All implements Replica.
func (v *View) All() iter.Seq2[dbadapter.Record, error] { return v.snap.Scan(v.ctx, nil, nil) }

// Apply implements Replica.
func (v *View) Apply(records []dbadapter.Record) ([]Verdict, error) { return v.door(records) }
