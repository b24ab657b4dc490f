package badgerdb

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/syncd-io/syncd/dbadapter"
)

// dropBatch is how many entries one transaction of a drop removes; commits of
// other namespaces go between them.
const dropBatch = 4096

// Drop deletes a namespace. The first transaction takes its name away and
// notes its number, so that the namespace is gone at once; the rest follows in
// pieces, and is taken up again when the store is next opened if it is broken
// off.
func (s *Store) Drop(ctx context.Context, id dbadapter.NamespaceID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return fmt.Errorf("drop namespace %x: the store is %w", id, dbadapter.ErrClosed)
	}
	if s.open[id] != nil {
		s.mu.Unlock()
		return fmt.Errorf("drop namespace %x: %w: it is open; close it first", id, dbadapter.ErrLocked)
	}
	s.open[id] = &namespace{closed: true} // keeps it from being opened
	s.mu.Unlock()
	var number uint32
	err := s.committer.do(func() (err error) {
		number, err = s.unname(id)
		return err
	})
	s.mu.Lock()
	delete(s.open, id)
	s.mu.Unlock()
	if err == nil && number != 0 {
		err = s.erase(ctx, number)
	}
	if err != nil {
		return fmt.Errorf("drop namespace %x: %w", id, err)
	}
	return nil
}

// unname takes a namespace's name away and returns its number, 0 if there is
// none. It runs on the committer's goroutine.
func (s *Store) unname(id dbadapter.NamespaceID) (uint32, error) {
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	name, err := get(txn, nameKey(id))
	if name == nil || err != nil {
		return 0, err
	}
	number, err := decodeName(id, name)
	if err != nil {
		return 0, err
	}
	if err := txn.Delete(nameKey(id)); err != nil {
		return 0, err
	}
	if err := txn.Set(numberKey(number), nil); err != nil {
		return 0, err
	}
	return number, s.committer.finish(txn)
}

// erase removes all entries of a number, piece by piece.
func (s *Store) erase(ctx context.Context, number uint32) error {
	for {
		more := false
		err := s.committer.submit(ctx, &request{run: func() (err error) {
			more, err = s.erasePiece(number)
			return err
		}})
		if err != nil || !more {
			return err
		}
	}
}

func (s *Store) erasePiece(number uint32) (more bool, err error) {
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	o := badger.DefaultIteratorOptions
	o.PrefetchValues = false
	o.Prefix = binary.BigEndian.AppendUint32(nil, number)
	it := txn.NewIterator(o)
	removed, size := 0, 0
	for it.Rewind(); it.Valid() && removed < dropBatch && size < dbadapter.MaxBatchBytes; it.Next() {
		key := it.Item().KeyCopy(nil)
		if err := txn.Delete(key); err != nil {
			it.Close()
			return false, err
		}
		removed, size = removed+1, size+len(key)
	}
	more = it.Valid()
	it.Close()
	if !more {
		if err := txn.Delete(numberKey(number)); err != nil {
			return false, err
		}
	}
	if err := s.committer.finish(txn); err != nil {
		return false, err
	}
	s.committer.publish(func() {})
	return more, nil
}

// resumeDrops finishes the drops that were broken off.
func (s *Store) resumeDrops() error {
	txn := s.db.NewTransaction(false)
	o := badger.DefaultIteratorOptions
	o.PrefetchValues = false
	o.Prefix = appendPrefix(nil, 0, kindDrop)
	it := txn.NewIterator(o)
	var numbers []uint32
	for it.Rewind(); it.Valid(); it.Next() {
		if key := it.Item().Key(); len(key) == prefixSize+4 {
			numbers = append(numbers, binary.BigEndian.Uint32(key[prefixSize:]))
		}
	}
	it.Close()
	txn.Discard()
	for _, number := range numbers {
		if err := s.erase(context.Background(), number); err != nil {
			return err
		}
	}
	return nil
}
