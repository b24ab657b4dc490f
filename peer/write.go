package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/ask"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/shards"
)

// PutOption says more of a record that is put.
type PutOption func(*put)

type put = node.Draft

// TTL makes the record expire when the time has passed since the write, by this
// machine's clock then. It counts to the millisecond, and is at most MaxTTL. From that
// time on it reads as absent on every node, by that node's clock. 0 means never.
func TTL(d time.Duration) PutOption { return func(p *put) { p.TTL = d } }

func draft(key, value []byte, held *dbadapter.Version, options []PutOption) node.Draft {
	d := node.Draft{Record: dbadapter.Record{Key: key, Value: value}, If: held}
	for _, option := range options {
		option(&d)
	}
	return d
}

// Put writes a record and returns its version once it is durable.
func (ns *Namespace) Put(ctx context.Context, key, value []byte, options ...PutOption) (dbadapter.Version, error) {
	return ns.writeOne(ctx, "put", draft(key, value, nil, options))
}

// PutIf writes a record if the one held has exactly the given version. The zero version stands for a
// key that holds nothing. A tombstone and an expired record are something: both have versions, with
// which Get answers. Otherwise PutIf fails with ErrConflict. In a namespace that is cut into shards a
// quorum read finds what the key holds, and one host compares and commits. Where a host is cut off,
// two writers can each have one accept. One of the two writes then becomes a conflict that is listed.
func (ns *Namespace) PutIf(ctx context.Context, key, value []byte, held dbadapter.Version, options ...PutOption) (dbadapter.Version, error) {
	return ns.writeOne(ctx, "put", draft(key, value, &held, options))
}

// Delete replaces a record by a tombstone. ErrNotFound, ErrDeleted, ErrExpired: the key holds no
// record. In a namespace that is cut into shards the tombstone is written in any case. Otherwise a
// write that is under way would undo the deletion.
func (ns *Namespace) Delete(ctx context.Context, key []byte, options ...PutOption) (dbadapter.Version, error) {
	d := draft(key, nil, nil, options)
	d.Record.Deleted = true
	if ns.core.Rule() != nil {
		return ns.writeShard(ctx, "delete", d)
	}
	return ns.commitOne(ctx, "delete", &d, func(set *node.Set) (*node.Attempt, error) {
		if err := d.CheckTTL(); err != nil {
			return nil, err
		}
		return set.Delete(key)
	})
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
	drafts   []node.Draft
	versions []dbadapter.Version
	refused  error // of an option that no batch takes
}

// Versions are those of the writes, in their order, once Namespace.Batch has returned no
// error.
func (b *Batch) Versions() []dbadapter.Version {
	return append([]dbadapter.Version{}, b.versions...)
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
	if d.Ack != nil {
		b.refused = fmt.Errorf("%w: a write of a batch has no level of its own", ErrInvalid)
	}
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

// Batch commits what fn adds to the batch in one atomic transaction. It takes at most
// dbadapter.MaxBatch writes, and dbadapter.MaxBatchBytes bytes of values and keys, where keys count
// twice. If fn, a limit (dbadapter.MaxBucket among them) or a condition fails, nothing is written; a
// BatchError says which write it was. What peers send meanwhile is committed before the batch, which
// then wins, or after it. In a namespace that is cut into shards the keys of a batch are of one shard
// (ErrInvalid), and each of its hosts commits the batch in one transaction. Where it has conditions,
// one host compares first, as for PutIf.
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
	var versions []dbadapter.Version
	var err error
	if ns.core.Rule() != nil {
		var w shards.Written
		w, err = ns.write(ctx, b.drafts, quorum.Quorum)
		versions = w.Versions
	} else {
		versions, err = ns.commitBatch(ctx, b.drafts)
	}
	if item, ok := errors.AsType[*node.ItemError](err); ok {
		err = &BatchError{Item: item.Item, Key: b.drafts[item.Item].Record.Key, Held: item.Held, Err: item.Err}
	}
	b.versions = versions
	if err != nil {
		return fmt.Errorf("write a batch of %d in %s: %w", len(b.drafts), ns.Name(), err)
	}
	return nil
}

func (ns *Namespace) commitBatch(ctx context.Context, drafts []node.Draft) (versions []dbadapter.Version, err error) {
	sh := ns.shards()[0]
	attempt, err := sh.set.Write(drafts...)
	if err == nil {
		err = sh.commit(ctx, attempt)
	}
	if err != nil {
		return nil, err
	}
	for i := range drafts {
		versions = append(versions, attempt.Version(i))
	}
	return versions, nil
}

func (ns *Namespace) writeOne(ctx context.Context, what string, d node.Draft) (dbadapter.Version, error) {
	if ns.core.Rule() != nil {
		return ns.writeShard(ctx, what, d)
	}
	return ns.commitOne(ctx, what, &d, func(set *node.Set) (*node.Attempt, error) { return set.Write(d) })
}

// commitOne makes and commits a write of one key in a namespace without shards. It waits for the
// members that are to hold it, too.
func (ns *Namespace) commitOne(ctx context.Context, what string, d *node.Draft, begin func(*node.Set) (*node.Attempt, error)) (v dbadapter.Version, err error) {
	if err := ns.enter(what); err != nil {
		return v, err
	}
	defer ns.gate.leave()
	members, err := ns.awaited(d)
	var attempt *node.Attempt
	sh := ns.shards()[0]
	if err == nil {
		attempt, err = begin(sh.set)
	}
	if err == nil {
		err = sh.commit(ctx, attempt)
	}
	if err == nil {
		v = attempt.Version(0)
		if members > 0 {
			if _, err = ns.Wait(ctx, WaitOptions{Key: d.Record.Key, Version: v, Count: members}); errors.Is(err, ErrInvalid) { // members have gone meanwhile
				err = fmt.Errorf("%w: %s", ErrUnconfirmed, err.Error()) // it is written, and not refused
			}
		}
	}
	if err != nil {
		return v, fmt.Errorf("%s %q in %s: %w", what, clip(d.Record.Key), ns.Name(), err)
	}
	return v, nil
}

// awaited is how many other members are to hold a write in a namespace without shards.
func (ns *Namespace) awaited(d *node.Draft) (members int, err error) {
	switch {
	case d.Ack == nil:
		return 0, nil
	case *d.Ack < quorum.One:
		return 0, fmt.Errorf("%w: level %s is for a namespace that is cut into shards: name a number of members", ErrInvalid, *d.Ack)
	case *d.Ack > quorum.One:
		members = int(*d.Ack) - 1
		_, err = ask.NewAwaiting(ns.core, nil, members) // before anything is written
	}
	return members, err
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

// Ack has a write acknowledged once so many hosts of the key's shard hold it durably; without it,
// a quorum. When the time is over first, the error is ErrUnconfirmed. It says how many hosts hold
// the record, and the version is returned with it. What is written stays, and may still win. In a
// namespace without shards a number counts the members that are to hold it, this node among them.
func Ack(l Level) PutOption { return func(p *put) { p.Ack = (*quorum.Level)(&l) } }

// level is what a write asks for.
func level(ack *quorum.Level) quorum.Level {
	if ack == nil {
		return quorum.Quorum
	}
	return *ack
}

// write writes drafts to a namespace that is cut into shards, whose keys are of one shard.
func (ns *Namespace) write(ctx context.Context, drafts []node.Draft, l quorum.Level) (shards.Written, error) {
	ctx, cancel := ns.bind(ctx)
	defer cancel()
	w, err := ns.hosts.Put(ctx, drafts, shards.PutOptions{Level: l})
	if err != nil && !errors.Is(err, ErrUnconfirmed) {
		w.Versions = nil
	}
	return w, err
}

// writeShard is a write of one key in a namespace that is cut into shards.
func (ns *Namespace) writeShard(ctx context.Context, what string, d node.Draft) (v dbadapter.Version, err error) {
	if err := ns.enter(what); err != nil {
		return v, err
	}
	defer ns.gate.leave()
	w, err := ns.write(ctx, []node.Draft{d}, level(d.Ack))
	if len(w.Versions) > 0 {
		v = w.Versions[0]
	}
	if item, ok := errors.AsType[*node.ItemError](err); ok {
		err = item.Err
	}
	if err != nil {
		err = fmt.Errorf("%s %q in %s: %w", what, clip(d.Record.Key), ns.Name(), ns.orRemoved(err))
	}
	return v, err
}
