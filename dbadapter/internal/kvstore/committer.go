package kvstore

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/queue"
)

// commit decides and commits the group, and sets each request's outcome.
func (c *committer) commit(group []*queue.Request[*batch]) {
	fail := func(err error) {
		for _, r := range group {
			if r.Err == nil {
				r.Batch.outcomes, r.Err = nil, err
			}
		}
	}
	if c.failed != nil {
		fail(c.failed)
		return
	}
	if err := c.store.disk.check(); err != nil {
		fail(err)
		return
	}
	plan := c.decide(group)
	err := c.write(plan)
	switch {
	case errors.Is(err, kv.ErrTooBig) && len(group) > 1:
		for i, r := range group {
			r.Batch.outcomes, r.Err = nil, nil
			c.commit(group[i : i+1])
		}
	case errors.Is(err, kv.ErrTooBig):
		fail(fmt.Errorf("apply: %w: many keys share an index, and their bucket does not fit into one transaction; apply fewer writes at once", dbadapter.ErrLimit))
	case err != nil:
		fail(err)
	}
}

// part is what a group does to one namespace.
type part struct {
	namespace *namespace
	group     *commit.Group
}

// decide runs the batches one after another against the last commit.
func (c *committer) decide(group []*queue.Request[*batch]) []part {
	var parts []part
next:
	for _, r := range group {
		b := r.Batch
		for i := range parts {
			if parts[i].namespace == b.namespace {
				b.outcomes, r.Err = parts[i].group.Batch(b.items)
				continue next
			}
		}
		g := b.namespace.newGroup()
		parts = append(parts, part{b.namespace, g})
		b.outcomes, r.Err = g.Batch(b.items)
	}
	return parts
}

// write commits what the parts touch as one transaction. Where that fails, what was
// written ahead of it is removed: a later commit, be it of another namespace, would let it
// be seen.
func (c *committer) write(parts []part) error {
	err := c.writeAll(parts)
	if err == nil || c.failed != nil {
		return err
	}
	for _, p := range parts {
		err = errors.Join(err, c.dropAhead(p.namespace))
	}
	return err
}

// writeAll commits what the parts touch, and lets observers and new snapshots see it in
// one step. ErrTooBig leaves no trace but what was written ahead.
func (c *committer) writeAll(parts []part) error {
	for _, p := range parts {
		if err := c.dropAhead(p.namespace); err != nil {
			return err
		}
		if err := c.keepAhead(p); err != nil {
			return err
		}
	}
	txn := c.store.db.Begin()
	defer txn.Discard()
	c.arena = c.arena[:0]
	staged := make([]stagedPart, 0, len(parts))
	for _, p := range parts {
		if len(p.group.Touched()) == 0 {
			continue
		}
		s, err := c.stage(txn, p)
		if err != nil {
			return err
		}
		staged = append(staged, s)
	}
	if len(staged) == 0 {
		return nil
	}
	for _, s := range staged {
		s.namespace.written.add(s.changes)
	}
	if err := c.finish(txn); err != nil {
		return err
	}
	for _, s := range staged {
		s.namespace.meta = s.meta
		s.namespace.looked.committed(s.meta.Seq, s.changes)
	}
	// Observers are told under the lock that snapshots take: a snapshot holds a
	// commit exactly if they have been told of it.
	c.publish(func() {
		for _, s := range staged {
			s.namespace.show()
			if s.namespace.observe != nil {
				s.namespace.observe(s.changes)
			}
		}
	})
	for _, s := range staged {
		if err := c.store.background(errors.Join(c.trim(s.namespace), c.trimKept(s.namespace))); err != nil {
			c.store.log.Warn("trim the change log and the kept log", slog.String("namespace", fmt.Sprintf("%x", s.namespace.id)), slog.Any("err", err))
		}
	}
	return nil
}

// finish adds the store's head to a transaction and commits it. If the engine then
// fails, other than with ErrTooBig, it is unknown what reached the disk, and the store
// takes no more writes.
func (c *committer) finish(txn kv.Txn) error {
	h := c.head
	h.commits++
	if err := txn.Set(metaKey(0), h.encode()); err != nil {
		return err
	}
	err := txn.Commit()
	if errors.Is(err, kv.ErrTooBig) {
		return err
	}
	if err != nil {
		c.failed = fmt.Errorf("write to the database: %w; whether the last write was kept is unknown, and no more are taken: check the disk and open the store again", err)
		return c.failed
	}
	c.head = h
	c.transactions.Add(1)
	return nil
}

// finishUnseen commits a transaction that changes no namespace. Snapshots go on from
// it all the same: an older transaction would keep the engine from making room.
func (c *committer) finishUnseen(txn kv.Txn) error {
	err := c.finish(txn)
	if err == nil {
		c.publish(func() {})
	}
	return err
}

// publish makes the last commit the one that snapshots see; set runs under the
// store's lock.
func (c *committer) publish(set func()) {
	s := c.store
	fresh := newReadTxn(s.db)
	s.mu.Lock()
	old := s.last
	s.last = fresh
	set()
	s.mu.Unlock()
	old.release()
}
