package kvstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// Drop deletes a namespace, in one small transaction that takes its name away
// and marks its number. The eraser removes its entries afterwards.
func (s *Store) Drop(ctx context.Context, id dbadapter.NamespaceID) error {
	err := s.life.Drop(ctx, id, func() error {
		return s.committer.do(ctx, func() error { return s.unname(id) })
	})
	if err == nil {
		s.eraser.Look()
	}
	return err
}

// List returns the namespaces that the store holds; see dbadapter.Lister.
func (s *Store) List(context.Context) ([]dbadapter.NamespaceID, error) {
	prefix := appendPrefix(nil, 0, kindName)
	keys, err := s.keys(prefix, prefix, math.MaxInt)
	ids := make([]dbadapter.NamespaceID, len(keys))
	for i, key := range keys {
		copy(ids[i][:], key[len(prefix):])
	}
	return ids, s.background(err)
}

// unname takes a namespace's name away and marks its number, if it is there. It
// runs on the committer's goroutine.
func (s *Store) unname(id dbadapter.NamespaceID) error {
	view := s.db.View()
	defer view.Close()
	name, err := kv.Get(view, nameKey(id))
	if name == nil || err != nil {
		return err
	}
	number, err := decodeName(id, name)
	if err != nil {
		return err
	}
	return s.committer.unseen(func(txn kv.Txn) error {
		return errors.Join(txn.Delete(nameKey(id)), txn.Set(dropKey(number), nil))
	})
}

// dropped are the marks of dropped namespaces in the database, as lifecycle.Dropped.
type dropped struct{ store *Store }

// A piece is what one transaction removes. A write that comes meanwhile waits
// for one of them, so it is small beside a transaction's bounds.
const erasePiece = 1024

// Next is the least marked number above another, 0 if there is no such number.
func (d dropped) Next(_ context.Context, above uint32) (number uint32, err error) {
	defer func() { err = d.store.background(err) }()
	keys, err := d.store.keys(appendPrefix(nil, 0, kindDrop), dropKey(above+1), 1)
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	if len(keys[0]) != prefixSize+4 {
		return 0, damage.Corrupt("the mark of a dropped namespace", "its key has %d bytes", len(keys[0]))
	}
	return binary.BigEndian.Uint32(keys[0][prefixSize:]), nil
}

// Erase removes all entries of a number, and then its mark. Each piece begins
// after the one before: Badger steps over each entry that it has deleted, and
// from the first entry on, the time would grow with the square of their number.
func (d dropped) Erase(ctx context.Context, number uint32) (err error) {
	defer func() { err = d.store.background(err) }()
	prefix := binary.BigEndian.AppendUint32(nil, number)
	for from := prefix; ; {
		keys, err := d.store.keys(prefix, from, erasePiece)
		if err != nil {
			return err
		}
		last := len(keys) == 0
		if last {
			keys = [][]byte{dropKey(number)}
		}
		if err := d.store.committer.do(ctx, func() error { return d.store.remove(keys) }); last || err != nil {
			return err
		}
		from = append(keys[len(keys)-1], 0)
	}
}

// keys reads up to a number of keys with a prefix, from one on.
func (s *Store) keys(prefix, from []byte, most int) (keys [][]byte, err error) {
	view := s.db.View()
	defer view.Close()
	defer damage.Recovered("database", &err)
	it := view.Iterate(prefix)
	defer it.Close()
	size := 0
	for it.Seek(from); it.Valid() && len(keys) < most && size < dbadapter.MaxBatchBytes; it.Next() {
		key := bytes.Clone(it.Key())
		keys, size = append(keys, key), size+len(key)
	}
	return keys, it.Err()
}

// remove deletes keys in one transaction. It runs on the committer's goroutine.
func (s *Store) remove(keys [][]byte) error {
	return s.committer.unseen(func(txn kv.Txn) error { return deleteAll(txn, keys) })
}

func deleteAll(txn kv.Txn, keys [][]byte) error {
	for _, key := range keys {
		if err := txn.Delete(key); err != nil {
			return err
		}
	}
	return nil
}

// dropKey is the mark of a namespace whose entries are to be erased.
func dropKey(number uint32) []byte {
	return binary.BigEndian.AppendUint32(appendPrefix(nil, 0, kindDrop), number)
}
