package peer

import (
	"bytes"
	"context"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
)

// Put writes a record and returns its version once it is durable.
func (ns *Namespace) Put(ctx context.Context, key, value []byte) (dbadapter.Version, error) {
	return ns.writeOne(ctx, "put", node.Draft{Record: dbadapter.Record{Key: key, Value: value}})
}

// PutIf writes a record if the one held has exactly the given version; the zero
// version stands for a key that holds nothing, not even a tombstone. Otherwise
// PutIf fails with ErrConflict.
func (ns *Namespace) PutIf(ctx context.Context, key, value []byte, held dbadapter.Version) (dbadapter.Version, error) {
	return ns.writeOne(ctx, "put", node.Draft{Record: dbadapter.Record{Key: key, Value: value}, If: &held})
}

// Delete replaces a record by a tombstone. ErrNotFound, ErrDeleted: the key holds
// no record.
func (ns *Namespace) Delete(ctx context.Context, key []byte) (dbadapter.Version, error) {
	return ns.commitOne(ctx, "delete", key, func() (*node.Attempt, error) { return ns.core.Delete(key) })
}

// DeleteIf replaces a record by a tombstone if it has exactly the given
// version; otherwise it fails with ErrConflict.
func (ns *Namespace) DeleteIf(ctx context.Context, key []byte, held dbadapter.Version) (dbadapter.Version, error) {
	return ns.writeOne(ctx, "delete", node.Draft{Record: dbadapter.Record{Key: key, Deleted: true}, If: &held})
}

// Batch collects writes that are committed together.
type Batch struct{ drafts []node.Draft }

func (b *Batch) add(key, value []byte, deleted bool, held *dbadapter.Version) {
	b.drafts = append(b.drafts, node.Draft{Record: dbadapter.Record{Key: bytes.Clone(key), Value: bytes.Clone(value), Deleted: deleted}, If: held})
}

// Put adds a write to the batch.
func (b *Batch) Put(key, value []byte) { b.add(key, value, false, nil) }

// PutIf adds a conditional write to the batch; see Namespace.PutIf.
func (b *Batch) PutIf(key, value []byte, held dbadapter.Version) { b.add(key, value, false, &held) }

// Delete adds a tombstone to the batch, whether or not the key is there.
func (b *Batch) Delete(key []byte) { b.add(key, nil, true, nil) }

// DeleteIf adds a conditional tombstone to the batch; see Namespace.DeleteIf.
func (b *Batch) DeleteIf(key []byte, held dbadapter.Version) { b.add(key, nil, true, &held) }

// Batch commits what fn adds to the batch in one atomic transaction, of at
// most dbadapter.MaxBatch writes and dbadapter.MaxBatchBytes bytes of keys and
// values. If fn, a limit or a condition fails, nothing is written. What peers
// send meanwhile is committed before the batch, which then wins, or after it.
func (ns *Namespace) Batch(ctx context.Context, fn func(b *Batch) error) error {
	var b Batch
	if err := fn(&b); err != nil {
		return err
	}
	if len(b.drafts) == 0 {
		return nil
	}
	if err := ns.enter("write a batch"); err != nil {
		return err
	}
	defer ns.gate.leave()
	attempt, err := ns.core.Write(b.drafts...)
	if err == nil {
		err = ns.commit(ctx, attempt)
	}
	if err != nil {
		return fmt.Errorf("write a batch of %d in %s: %w", len(b.drafts), ns.Name(), err)
	}
	return nil
}

func (ns *Namespace) writeOne(ctx context.Context, what string, d node.Draft) (dbadapter.Version, error) {
	return ns.commitOne(ctx, what, d.Record.Key, func() (*node.Attempt, error) { return ns.core.Write(d) })
}

func (ns *Namespace) commitOne(ctx context.Context, what string, key []byte, begin func() (*node.Attempt, error)) (dbadapter.Version, error) {
	if err := ns.enter(what); err != nil {
		return dbadapter.Version{}, err
	}
	defer ns.gate.leave()
	attempt, err := begin()
	if err == nil {
		err = ns.commit(ctx, attempt)
	}
	if err != nil {
		return dbadapter.Version{}, fmt.Errorf("%s %q in %s: %w", what, clip(key), ns.Name(), err)
	}
	return attempt.Version(0), nil
}

// commit carries an attempt to the store until it is there.
func (ns *Namespace) commit(ctx context.Context, a *node.Attempt) error {
	for {
		again, err := a.Judge(ns.try(ctx, a))
		if !again {
			return err
		}
	}
}

func (ns *Namespace) try(ctx context.Context, a *node.Attempt) ([]dbadapter.Outcome, error) {
	defer a.Hold()()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	writes, err := a.Writes()
	if err != nil {
		return nil, err
	}
	return ns.core.Store.Apply(ctx, writes)
}

// clip shortens a key for a message.
func clip(key []byte) []byte { return key[:min(len(key), 64)] }
