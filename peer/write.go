package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
)

// Put writes a record and returns its version once it is durable.
func (ns *Namespace) Put(ctx context.Context, key, value []byte) (dbadapter.Version, error) {
	return ns.writeOne(ctx, "put", write{record: dbadapter.Record{Key: key, Value: value}})
}

// PutIf writes a record if the one held has exactly the given version; the
// zero version demands that there is none, not even a tombstone. Else it
// fails with ErrConflict.
func (ns *Namespace) PutIf(ctx context.Context, key, value []byte, held dbadapter.Version) (dbadapter.Version, error) {
	return ns.writeOne(ctx, "put", write{record: dbadapter.Record{Key: key, Value: value}, held: &held})
}

// Delete replaces a record by a tombstone. ErrNotFound and ErrDeleted say that
// there was none to delete.
func (ns *Namespace) Delete(ctx context.Context, key []byte) (dbadapter.Version, error) {
	for range maxRetries {
		rec, err := ns.Get(ctx, key)
		if err != nil {
			return rec.Version, fmt.Errorf("delete: %w", err)
		}
		version, err := ns.DeleteIf(ctx, key, rec.Version)
		if !errors.Is(err, ErrConflict) {
			return version, err
		}
	}
	return dbadapter.Version{}, fmt.Errorf("delete %q in %s: %w again and again; try again", key, ns.Name(), ErrConflict)
}

// DeleteIf replaces a record by a tombstone if it has exactly the given
// version; else it fails with ErrConflict.
func (ns *Namespace) DeleteIf(ctx context.Context, key []byte, held dbadapter.Version) (dbadapter.Version, error) {
	return ns.writeOne(ctx, "delete", write{record: dbadapter.Record{Key: key, Deleted: true}, held: &held})
}

// maxRetries bounds the races that one write may lose against others.
const maxRetries = 10

// Batch collects writes that are committed together.
type Batch struct{ writes []write }

// write is one write before it has a version.
type write struct {
	record dbadapter.Record
	held   *dbadapter.Version
}

func (b *Batch) add(key, value []byte, deleted bool, held *dbadapter.Version) {
	b.writes = append(b.writes, write{dbadapter.Record{Key: bytes.Clone(key), Value: bytes.Clone(value), Deleted: deleted}, held})
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
	if len(b.writes) == 0 {
		return nil
	}
	if err := ns.enter("write a batch"); err != nil {
		return err
	}
	defer ns.gate.leave()
	ns.commits.Lock()
	defer ns.commits.Unlock()
	_, outcomes, err := ns.commit(ctx, b.writes)
	if err != nil {
		return fmt.Errorf("write a batch of %d in %s: %w", len(b.writes), ns.Name(), err)
	}
	for i, o := range outcomes {
		if o.Result == dbadapter.Dominated { // by what came past the clock
			return fmt.Errorf("write a batch of %d in %s: %w: %q is held as %s, later than this node's clock; the others are written",
				len(b.writes), ns.Name(), ErrConflict, clip(b.writes[i].record.Key), o.Held)
		}
	}
	return nil
}

// writeOne commits one write. A version that was overtaken between its making
// and its commit, by another write of this node, is made anew, so that who
// writes reads its own write.
func (ns *Namespace) writeOne(ctx context.Context, what string, w write) (dbadapter.Version, error) {
	if err := ns.enter(what); err != nil {
		return dbadapter.Version{}, err
	}
	defer ns.gate.leave()
	for range maxRetries {
		ns.commits.RLock()
		writes, outcomes, err := ns.commit(ctx, []write{w})
		ns.commits.RUnlock()
		if errors.Is(err, ErrConflict) && len(outcomes) == 1 {
			return dbadapter.Version{}, fmt.Errorf("%s %q in %s: %w; it is %s now",
				what, w.record.Key, ns.Name(), err, outcomes[0].Held)
		}
		if err != nil {
			return dbadapter.Version{}, fmt.Errorf("%s %q in %s: %w", what, clip(w.record.Key), ns.Name(), err)
		}
		if outcomes[0].Result == dbadapter.Applied {
			return writes[0].Record.Version, nil
		}
		ns.clock.Observe(hlc.Timestamp(outcomes[0].Held.Clock))
	}
	return dbadapter.Version{}, fmt.Errorf("%s %q in %s: %w again and again; try again", what, w.record.Key, ns.Name(), ErrConflict)
}

// commit gives the writes their versions and signatures and stores them;
// commits is held.
func (ns *Namespace) commit(ctx context.Context, batch []write) ([]dbadapter.Write, []dbadapter.Outcome, error) {
	writes := make([]dbadapter.Write, len(batch))
	for i, w := range batch {
		version, err := ns.nextVersion()
		if err != nil {
			return nil, nil, err
		}
		w.record.Version = version
		hashed, err := dbadapter.Hash(ns.keys.Hasher, w.record)
		if err != nil {
			return nil, nil, err
		}
		writes[i] = dbadapter.Write{Record: hashed, If: w.held}
	}
	outcomes, err := ns.apply(ctx, writes)
	return writes, outcomes, err
}

func (ns *Namespace) nextVersion() (dbadapter.Version, error) {
	at := ns.clock.Read()
	if at.Time().Before(dbadapter.Epoch) {
		return dbadapter.Version{}, fmt.Errorf("%w: this machine's clock says %s; set it", ErrFutureVersion, at.Time().Format("2006-01-02"))
	}
	return dbadapter.Version{Clock: dbadapter.Timestamp(at), Writer: ns.node.self.writer, Incarnation: ns.incarnation}, nil
}

// apply signs writes of this node and stores them.
func (ns *Namespace) apply(ctx context.Context, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
	roster := ns.roster.Load()
	if !roster.has(ns.node.self.id, RoleWrite) {
		return nil, fmt.Errorf("%w: this node's role here is %s; ask an admin for the role write", ErrDenied, roster.byID[ns.node.self.id].Role)
	}
	if len(writes) > dbadapter.MaxBatch {
		return nil, fmt.Errorf("%w: a batch has at most %d writes", ErrLimit, dbadapter.MaxBatch)
	}
	if !roster.state.Policy.Unsigned {
		if err := sign(ns.node.self.key, ns.keys.ID, writes); err != nil {
			return nil, fmt.Errorf("sign: %w", err)
		}
	}
	return ns.store.Apply(ctx, writes)
}

// clip shortens a key for a message.
func clip(key []byte) []byte { return key[:min(len(key), 64)] }
