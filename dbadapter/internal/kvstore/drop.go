package kvstore

import (
	"context"
	"math"

	"github.com/syncd-io/syncd/dbadapter"
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
	txn := s.db.Begin()
	defer txn.Discard()
	name, err := kv.Get(txn, nameKey(id))
	if name == nil || err != nil {
		return err
	}
	number, err := decodeName(id, name)
	if err != nil {
		return err
	}
	if err := txn.Delete(nameKey(id)); err != nil {
		return err
	}
	if err := txn.Set(dropKey(number), nil); err != nil {
		return err
	}
	return s.committer.finish(txn)
}
