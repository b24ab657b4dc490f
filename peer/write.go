package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
)

// PutOption says more of a record that is put.
type PutOption func(*node.Draft)

// TTL makes the record expire when the time has passed since the write, by this
// machine's clock then: to the millisecond, at most MaxTTL. From that time on it
// reads as absent on every node, by that node's clock. 0 means never.
func TTL(d time.Duration) PutOption { return func(r *node.Draft) { r.TTL = d } }

// MaxTTL is the longest time to live: 100 years of 365 days.
const MaxTTL = node.MaxTTL

func draft(key, value []byte, held *dbadapter.Version, options []PutOption) node.Draft {
	d := node.Draft{Record: dbadapter.Record{Key: key, Value: value}, If: held}
	for _, o := range options {
		o(&d)
	}
	return d
}

// Put writes a record and returns its version once it is durable.
func (ns *Namespace) Put(ctx context.Context, key, value []byte, options ...PutOption) (dbadapter.Version, error) {
	return ns.writeOne(ctx, "put", draft(key, value, nil, options))
}

// PutIf writes a record if the one held has exactly the given version; the zero
// version stands for a key that holds nothing, not even a tombstone or an expired
// record: both have versions, with which Get answers. Otherwise PutIf fails with
// ErrConflict. In a namespace that is cut into shards a majority of the hosts holds it then, unless Acks
// says otherwise, and the error is ErrUnsure where it is not sure what the key holds.
func (ns *Namespace) PutIf(ctx context.Context, key, value []byte, held dbadapter.Version, options ...PutOption) (dbadapter.Version, error) {
	return ns.writeOne(ctx, "put", draft(key, value, &held, options))
}

// Delete replaces a record by a tombstone. ErrNotFound, ErrDeleted, ErrExpired: the
// key holds no record.
func (ns *Namespace) Delete(ctx context.Context, key []byte, options ...PutOption) (dbadapter.Version, error) {
	d := draft(key, nil, nil, options)
	d.Record.Deleted = true
	if ns.core.Rule() != nil {
		return ns.offerOne(ctx, "delete", d, true)
	}
	if err := errors.Join(unsharded(&d), d.CheckTTL()); err != nil {
		return dbadapter.Version{}, fmt.Errorf("delete %q in %s: %w", clip(key), ns.Name(), err)
	}
	return ns.commitOne(ctx, "delete", key, func(set *node.Set) (*node.Attempt, error) { return set.Delete(key) })
}

// DeleteIf replaces a record by a tombstone if it has exactly the given
// version; otherwise it fails with ErrConflict.
func (ns *Namespace) DeleteIf(ctx context.Context, key []byte, held dbadapter.Version, options ...PutOption) (dbadapter.Version, error) {
	d := draft(key, nil, &held, options)
	d.Record.Deleted = true
	return ns.writeOne(ctx, "delete", d)
}

// Batch collects writes that are committed together.
type Batch struct {
	drafts  []node.Draft
	attempt *node.Attempt // nil until it is committed
	refused error         // of an option that no batch takes
}

// Versions are those of the writes, in their order, once Namespace.Batch has returned no
// error.
func (b *Batch) Versions() []dbadapter.Version {
	versions := []dbadapter.Version{}
	for i := range b.drafts {
		if b.attempt != nil {
			versions = append(versions, b.attempt.Version(i))
		}
	}
	return versions
}

// BatchError says which write of a batch has failed, counted from 0.
type BatchError struct {
	Item int
	Key  []byte
	// Held is the version that the key holds, where the condition of the write did not
	// hold; zero if it holds nothing.
	Held dbadapter.Version
	Err  error
}

func (e *BatchError) Error() string {
	return fmt.Sprintf("item %d, %q: %v", e.Item, clip(e.Key), e.Err)
}

// Unwrap makes it the error that it is.
func (e *BatchError) Unwrap() error { return e.Err }

func (b *Batch) add(key, value []byte, deleted bool, held *dbadapter.Version, options ...PutOption) {
	d := draft(bytes.Clone(key), bytes.Clone(value), held, options)
	d.Record.Deleted = deleted
	b.drafts = append(b.drafts, d)
	b.refused = errors.Join(b.refused, unsharded(&d))
}

// Put adds a write to the batch.
func (b *Batch) Put(key, value []byte, options ...PutOption) {
	b.add(key, value, false, nil, options...)
}

// PutIf adds a conditional write to the batch; see Namespace.PutIf.
func (b *Batch) PutIf(key, value []byte, held dbadapter.Version, options ...PutOption) {
	b.add(key, value, false, &held, options...)
}

// Delete adds a tombstone to the batch, whether or not the key is there.
func (b *Batch) Delete(key []byte) { b.add(key, nil, true, nil) }

// DeleteIf adds a conditional tombstone to the batch; see Namespace.DeleteIf.
func (b *Batch) DeleteIf(key []byte, held dbadapter.Version) { b.add(key, nil, true, &held) }

// Batch commits what fn adds to the batch in one atomic transaction, of at
// most dbadapter.MaxBatch writes and dbadapter.MaxBatchBytes bytes of values and
// keys, which count twice. If fn, a limit (dbadapter.MaxBucket among them) or a condition
// fails, nothing is written; a BatchError says which write it was. What peers send meanwhile
// is committed before the batch, which then wins, or after it. The keys of a batch are of one
// shard, of which this node is a host (ErrInvalid, ErrNotHost); where it is not sure of what it holds, it looks
// the keys of conditions up at the other hosts, as PutIf does (ErrUnsure). A batch is committed at this host alone, and
// goes to the others behind that: where another one takes a write on the same version meanwhile, one of the two becomes a
// conflict.
func (ns *Namespace) Batch(ctx context.Context, fn func(b *Batch) error) error {
	var b Batch
	if err := fn(&b); err != nil {
		return err
	}
	if b.refused != nil {
		return fmt.Errorf("write a batch of %d in %s: %w", len(b.drafts), ns.Name(), b.refused)
	}
	if len(b.drafts) == 0 {
		return nil
	}
	if err := ns.enter("write a batch"); err != nil {
		return err
	}
	defer ns.gate.leave()
	sh, err := ns.shardOfAll(b.drafts)
	var attempt *node.Attempt
	if err == nil {
		attempt, err = sh.set.Write(b.drafts...)
	}
	if err == nil {
		err = ns.lookUpConditions(ctx, sh, b.drafts) // which the attempt shares, and has checked
	}
	if err == nil {
		err = sh.commit(ctx, attempt)
	}
	if errors.Is(err, ErrNotHost) {
		err = fmt.Errorf("%w, which holds %q: write the batch at one of its hosts, which locate names", err, clip(b.drafts[0].Record.Key))
	}
	if item, ok := errors.AsType[*node.ItemError](err); ok {
		err = &BatchError{Item: item.Item, Key: b.drafts[item.Item].Record.Key, Held: item.Held, Err: item.Err}
	}
	if err != nil {
		return fmt.Errorf("write a batch of %d in %s: %w", len(b.drafts), ns.Name(), err)
	}
	b.attempt = attempt
	return nil
}

// shardOfAll is the shard of a batch, which a transaction of one store commits.
func (ns *Namespace) shardOfAll(drafts []node.Draft) (*shard, error) {
	first := drafts[0].Record.Key
	for i := range drafts {
		if key := drafts[i].Record.Key; ns.core.Home(key) != ns.core.Home(first) {
			return nil, fmt.Errorf("%w: %q and %q are of different shards, and a batch is of one: write them one by one", ErrInvalid, clip(first), clip(key))
		}
	}
	sh, err := ns.shardOf(first)
	if errors.Is(err, ErrNotFound) {
		err = ErrNotHost
	}
	return sh, err
}

func (ns *Namespace) writeOne(ctx context.Context, what string, d node.Draft) (dbadapter.Version, error) {
	if ns.core.Rule() != nil {
		return ns.offerOne(ctx, what, d, false)
	}
	if err := unsharded(&d); err != nil {
		return dbadapter.Version{}, fmt.Errorf("%s %q in %s: %w", what, clip(d.Record.Key), ns.Name(), err)
	}
	return ns.commitOne(ctx, what, d.Record.Key, func(set *node.Set) (*node.Attempt, error) { return set.Write(d) })
}

func (ns *Namespace) commitOne(ctx context.Context, what string, key []byte, begin func(*node.Set) (*node.Attempt, error)) (dbadapter.Version, error) {
	return ns.commitTo(ctx, what, key, func() (*shard, error) { return ns.shardOf(key) }, begin)
}

// commitTo makes a write of one key to a shard, and commits it.
func (ns *Namespace) commitTo(ctx context.Context, what string, key []byte, find func() (*shard, error), begin func(*node.Set) (*node.Attempt, error)) (dbadapter.Version, error) {
	if err := ns.enter(what); err != nil {
		return dbadapter.Version{}, err
	}
	defer ns.gate.leave()
	sh, err := find()
	var attempt *node.Attempt
	if err == nil {
		attempt, err = begin(sh.set)
	}
	if err == nil {
		err = sh.commit(ctx, attempt)
	}
	if err != nil {
		return dbadapter.Version{}, fmt.Errorf("%s %q in %s: %w", what, clip(key), ns.Name(), err)
	}
	return attempt.Version(0), nil
}

// commit carries an attempt to the store until it is there.
func (sh *shard) commit(ctx context.Context, a *node.Attempt) error {
	for {
		again, err := a.Judge(sh.try(ctx, a))
		if !again {
			return err
		}
	}
}

func (sh *shard) try(ctx context.Context, a *node.Attempt) ([]dbadapter.Outcome, error) {
	defer a.Hold()()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	writes, err := a.Writes()
	if err != nil {
		return nil, err
	}
	return sh.set.Store.Apply(ctx, writes)
}

// clip shortens a key for a message.
func clip(key []byte) []byte { return key[:min(len(key), 64)] }
