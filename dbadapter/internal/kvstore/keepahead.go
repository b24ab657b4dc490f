package kvstore

import (
	"encoding/binary"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// A small batch can take the place of records that are much larger, and the
// conflicts with these may not fit into its transaction. They are then written
// ahead, in transactions of their own, and the head says so until the commit itself,
// which makes them count. Where the commit does not follow, they are removed.
//
// The head's own number (layout.Meta.Own), if not 0, is the first entry that was written
// ahead of a commit which is not there.

// pieceBytes is how much of the kept log one transaction writes ahead.
const pieceBytes = dbadapter.MaxBatchBytes

// keepSize is what a leaver takes in a transaction, at most.
func keepSize(l *commit.Leaver) int { return keepBytes + l.Size() }

// keepAhead writes the leavers ahead of their commit where they do not fit into it.
func (c *committer) keepAhead(p *part) error {
	size, leavers := 0, p.Group.Leavers()
	for i := range leavers {
		if leavers[i].Why == dbadapter.KeptConflict {
			size += keepSize(&leavers[i])
		}
	}
	if size <= conflictBytes {
		return nil
	}
	own := p.Namespace.Meta.Kept.Seq + 1
	for len(leavers) > 0 {
		if err := c.store.disk.write(); err != nil {
			return err
		}
		some := leavers[:onePiece(leavers)]
		leavers = leavers[len(some):]
		c.arena = c.arena[:0]
		err := p.Namespace.changeHidden(func(txn kv.Txn, m *layout.Meta) error {
			m.Own = own
			return c.stageKept(txn, p.Namespace.Number, &m.Kept, some)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// onePiece is how many leavers one transaction writes ahead, at least one.
func onePiece(leavers []commit.Leaver) int {
	size := 0
	for i := range leavers {
		if size += keepSize(&leavers[i]); i > 0 && size > pieceBytes {
			return i
		}
	}
	return len(leavers)
}

// dropAhead removes what was written ahead of a commit that did not follow. It runs
// on the committer's goroutine.
func (c *committer) dropAhead(n *namespace) error {
	if n.Meta.Own == 0 {
		return nil
	}
	view := c.store.db.View()
	defer view.Close()
	return n.changeHidden(func(txn kv.Txn, m *layout.Meta) error {
		for seq := m.Own; seq <= m.Kept.Seq; seq++ {
			if err := n.stageForget(view, txn, &m.Kept, seq, dbadapter.KeptConflict, dbadapter.KeptSetAside); err != nil {
				return err
			}
		}
		m.Kept.Seq, m.Own = m.Own-1, 0
		return nil
	})
}

// trimKept removes the oldest conflicts beyond the bounds. It runs on the
// committer's goroutine.
func (c *committer) trimKept(n *namespace) error {
	for n.Meta.Kept.Full() {
		if err := c.trimPiece(n); err != nil {
			return err
		}
	}
	return nil
}

// trimPiece removes some of the oldest conflicts. It begins after those that it removed
// before: Badger steps over each entry that it has deleted, so that from the first number
// on, the time of a batch would grow with all conflicts that there have been.
func (c *committer) trimPiece(n *namespace) error {
	prefix := append(appendPrefix(nil, n.Number, layout.KindKept), byte(dbadapter.KeptConflict))
	keys, err := c.store.keys(prefix, keptKey(n.Number, layout.KindKept, dbadapter.KeptConflict, n.trimmed+1), forgetPiece)
	if err != nil {
		return err
	}
	view := c.store.db.View()
	defer view.Close()
	trimmed := n.trimmed
	err = n.change(func(txn kv.Txn, m *layout.Meta) error {
		for _, key := range keys {
			if !m.Kept.Full() {
				break
			}
			if len(key) != keptKeySize {
				return damage.Corrupt("an entry of the kept log", "its key has %d bytes", len(key))
			}
			trimmed = binary.BigEndian.Uint64(key[prefixSize+1:])
			if err := n.stageForget(view, txn, &m.Kept, trimmed, dbadapter.KeptConflict); err != nil {
				return err
			}
		}
		if *m == n.Meta {
			return damage.Corrupt("the kept log", "its head counts %d conflicts of %d bytes, and %d are there", m.Kept.Conflicts, m.Kept.Bytes, len(keys))
		}
		return nil
	})
	if err == nil {
		n.trimmed = trimmed
	}
	return err
}
