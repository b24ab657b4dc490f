package peer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
)

// Item is one record to import.
type Item struct {
	Key, Value []byte
	// Time, if not zero, is the time of the record's version, in whole
	// milliseconds, which then has no writer: two sites that import the same
	// dated items hold the same records.
	Time time.Time
	// Deleted imports a tombstone; Value is empty.
	Deleted bool
}

// ImportResult counts what became of imported items.
type ImportResult struct {
	// Items is how many were dealt with, in order: an import that failed is
	// taken up again at item Items + 1.
	Items int64
	// Written records are new or have changed.
	Written int64
	// Unchanged items said what was there already.
	Unchanged int64
	// Stale items were dated before the record that is there.
	Stale int64
}

// Import writes items in batches, each durable in one transaction. An error
// from the sequence, or from an item, ends it: all items before are kept, and
// the result says how many those were.
//
// An undated item whose value is there already makes no new version. A dated
// one is the record with that date, and wins or loses by it as if it had been
// written then.
func (ns *Namespace) Import(ctx context.Context, items iter.Seq2[Item, error]) (ImportResult, error) {
	if err := ns.enter("import"); err != nil {
		return ImportResult{}, err
	}
	defer ns.gate.leave()
	ctx, cancel := ns.bind(ctx)
	defer cancel()
	im := importing{ns: ns, keys: map[string]bool{}}
	failed := im.run(ctx, items)
	if !errors.Is(failed, errApply) {
		failed = errors.Join(failed, im.flush(ctx))
	}
	if failed != nil {
		return im.result, fmt.Errorf("import into %s: %w", ns.Name(), failed)
	}
	return im.result, nil
}

// errApply marks a failure to write, after which the pending batch is lost.
var errApply = errors.New("write")

type importing struct {
	ns     *Namespace
	result ImportResult
	batch  []Item
	keys   map[string]bool // of batch
	bytes  int
}

func (im *importing) run(ctx context.Context, items iter.Seq2[Item, error]) error {
	number := int64(0)
	for item, err := range items {
		if err == nil {
			err = im.check(&item)
		}
		if err == nil {
			err = ctx.Err()
		}
		number++
		if err != nil {
			return fmt.Errorf("item %d: %w", number, err)
		}
		// One batch holds a key once: the next sees what this one wrote.
		size := len(item.Key) + len(item.Value)
		if len(im.batch) == importBatch || im.bytes+size > importBytes || im.keys[string(item.Key)] {
			if err := im.flush(ctx); err != nil {
				return err
			}
		}
		im.batch = append(im.batch, item.clone())
		im.keys[string(item.Key)] = true
		im.bytes += size
	}
	return nil
}

func (im *importing) check(item *Item) error {
	r := dbadapter.Record{Key: item.Key, Value: item.Value, Deleted: item.Deleted}
	if err := r.Validate(); err != nil || item.Time.IsZero() {
		return err
	}
	return hlc.Check(item.Time, im.ns.node.now(), im.ns.roster.Load().state.Policy.MaxSkew)
}

// flush writes the pending batch.
func (im *importing) flush(ctx context.Context) error {
	if len(im.batch) == 0 {
		return nil
	}
	ns := im.ns
	ns.commits.Lock()
	defer ns.commits.Unlock()
	writes, same, err := im.writes()
	var outcomes []dbadapter.Outcome
	if err == nil && len(writes) > 0 {
		outcomes, err = ns.apply(ctx, writes)
	}
	if err != nil {
		return fmt.Errorf("%w items %d to %d: %w", errApply, im.result.Items+1, im.result.Items+int64(len(im.batch)), err)
	}
	for i, o := range outcomes {
		switch {
		case o.Result == dbadapter.Applied:
			im.result.Written++
		case o.Result == dbadapter.Same || same[i]:
			im.result.Unchanged++
		default:
			im.result.Stale++
		}
	}
	im.result.Unchanged += int64(len(im.batch) - len(writes))
	im.result.Items += int64(len(im.batch))
	im.batch, im.bytes = im.batch[:0], 0
	clear(im.keys)
	return nil
}

// writes turns the batch into writes, less the undated items that say what is
// there already. same tells of each write whether the content is there.
func (im *importing) writes() (writes []dbadapter.Write, same []bool, err error) {
	snap, err := im.ns.store.Snapshot()
	if err != nil {
		return nil, nil, err
	}
	defer snap.Close()
	for _, item := range im.batch {
		r := dbadapter.Record{Key: item.Key, Value: item.Value, Deleted: item.Deleted}
		held, err := snap.Get(item.Key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, nil, err
		}
		there := err == nil && held.SameContent(&r)
		if item.Time.IsZero() {
			if there || err != nil && item.Deleted {
				continue
			}
			if r.Version, err = im.ns.nextVersion(); err != nil {
				return nil, nil, err
			}
		} else {
			r.Version = dbadapter.Version{Clock: dbadapter.TimestampAt(item.Time)}
			im.ns.clock.Observe(hlc.Timestamp(r.Version.Clock)) // it may be a little ahead
		}
		hashed, err := dbadapter.Hash(im.ns.keys.Hasher, r)
		if err != nil {
			return nil, nil, err
		}
		writes = append(writes, dbadapter.Write{Record: hashed})
		same = append(same, there)
	}
	return writes, same, nil
}

func (item *Item) clone() Item {
	r := dbadapter.Record{Key: item.Key, Value: item.Value}
	r = r.Clone()
	return Item{r.Key, r.Value, item.Time, item.Deleted}
}
