package kvstore

import (
	"fmt"
	"slices"
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/grouped"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

type namespace struct {
	grouped.Namespace[*namespace]
	store *Store

	trimmed uint64    // used by the committer only: conflicts up to this number are out of the kept log
	cache   readCache // has a lock of its own
	written bloom     // likewise
	summary keeps     // likewise

	saving sync.Mutex // held while a summary is saved
}

func (s *Store) newNamespace(id dbadapter.NamespaceID, hasher dbadapter.Hasher, observe func([]dbadapter.Change)) *namespace {
	n := &namespace{store: s}
	n.Namespace = grouped.Namespace[*namespace]{
		Self: n, ID: id, Hasher: hasher, Observe: observe, Submit: s.committer.queue.Submit, Do: s.committer.do, Lock: &s.mu,
	}
	return n
}

// load reads the namespace's number and head, or gives it a number. It runs on
// the committer's goroutine.
func (n *namespace) load() error {
	s, c := n.store, &n.store.committer
	view := s.db.View()
	defer view.Close()
	name, err := kv.Get(view, nameKey(n.ID))
	if err != nil {
		return err
	}
	if name != nil {
		if n.Number, err = decodeName(n.ID, name); err != nil {
			return err
		}
		b, err := kv.Get(view, metaKey(n.Number))
		if err != nil {
			return err
		}
		if b == nil {
			return damage.Corrupt("the head of a namespace", "it is missing")
		}
		if err := n.Meta.Decode(b, n.Number); err != nil {
			return err
		}
		if n.summary, err = readKeeps(view, n.Number); err != nil {
			n.summary = keeps{} // it is of no use; the caller of Summary learns why
		}
		if err := c.dropAhead(n); err != nil {
			return err
		}
	} else {
		if c.head.next > maxNumber {
			return fmt.Errorf("%w: %d namespaces have been made in this store; start a new one", dbadapter.ErrLimit, c.head.next-1)
		}
		if err := n.store.disk.write(); err != nil {
			return err
		}
		n.Number, n.Meta = c.head.next, layout.Meta{First: 1, Log: dbadapter.NewLogID()}
		c.head.next++
		err := n.changeHidden(func(txn kv.Txn, _ *layout.Meta) error {
			return txn.Set(nameKey(n.ID), encodeName(n.ID, n.Number))
		})
		if err != nil {
			return err
		}
	}
	n.cache.restart(n.Meta.Seq)
	c.publish(n.show)
	return n.written.begin(s.last.txn, &n.Meta, n.Number)
}

// Encode gives each item its stored form, all in one piece of memory, and
// points the item's record there: a change handed to an observer stays valid, and the
// next group may be decided against the record. It returns the weight of the records.
func (n *namespace) Encode(items []commit.Item) int {
	size, stored := 0, 0
	for i := range items {
		r := &items[i].Record
		size += r.Weight()
		stored += prefixSize + len(r.Key) + layout.HeadSize(&r.Record) + len(r.Value)
	}
	b := make([]byte, 0, stored)
	for i := range items {
		it, start := &items[i], len(b)
		b = append(appendPrefix(b, n.Number, kindRecord), it.Record.Key...)
		key := b[start+prefixSize : len(b) : len(b)]
		if it.Action.Removes() {
			it.Record.Key = key // only its digest counts beside it
			continue
		}
		b = appendEnvelope(b, &it.Record)
		it.Stored = b[start:len(b):len(b)]
		it.Record.Key = key
		it.Record.Value = it.Stored[len(it.Stored)-len(it.Record.Value):]
		if size := len(it.Record.Signature); size > 0 {
			end := len(it.Stored) - len(it.Record.Value) - it.Record.OptionalSize()
			it.Record.Signature = it.Stored[end-size : end : end]
		}
		it.Record.Replaces = slices.Clone(it.Record.Replaces)
	}
	return size
}

// newGroup decides against a view of the last commit, and against the transaction that
// lands on it, or nil where the committer writes none.
func (n *namespace) newGroup(view *readTxn, landing *prepared) *commit.Group {
	var before *commit.Group
	if landing != nil {
		for _, s := range landing.staged {
			if s.Namespace == n {
				before = s.Group
			}
		}
	}
	return commit.NewGroup(n.Hasher, func(indices []dbadapter.Index) []commit.Loaded {
		loaded := make([]commit.Loaded, len(indices))
		rest := indices
		if before != nil {
			rest = make([]dbadapter.Index, 0, len(indices))
			for i, index := range indices {
				held, ok := before.Held(index)
				if loaded[i].Held = held; !ok {
					rest = append(rest, index)
				}
			}
		}
		n.loadAll(view, indices, loaded, rest)
		return loaded
	})
}

// Put commits the namespace's head and shows it.
func (n *namespace) Put(head layout.Meta) error {
	return n.change(func(_ kv.Txn, m *layout.Meta) error {
		*m = head
		return nil
	})
}

// change commits what stage makes of the namespace's head, with what it puts into the
// transaction, and shows it. It runs on the committer's goroutine.
func (n *namespace) change(stage func(kv.Txn, *layout.Meta) error) error {
	err := n.changeHidden(stage)
	if err == nil {
		n.store.committer.publish(n.show)
	}
	return err
}

// changeHidden is change that does not show the head: a snapshot sees it with the next commit.
func (n *namespace) changeHidden(stage func(kv.Txn, *layout.Meta) error) error {
	txn := n.store.db.Begin()
	defer txn.Discard()
	m := n.Meta
	err := stage(txn, &m)
	if err == nil {
		err = txn.Set(metaKey(n.Number), m.Encode(n.Number))
	}
	if err == nil {
		err = n.store.committer.finish(txn)
	}
	if err == nil {
		n.Meta = m
	}
	return err
}

// show lets callers see the head as of the last commit. The store's lock is held.
func (n *namespace) show() { n.Shown = n.Meta }

// Release lets the namespace be opened again.
func (n *namespace) Release() { n.store.life.Release(n.ID) }
