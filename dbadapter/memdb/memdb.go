// Package memdb is a store in memory, for tests, simulations and caches:
//
//	store := memdb.New(memdb.Options{})
//
// It keeps all promises of dbadapter.Store but durability: the records are gone
// with the process.
//
// A namespace is two persistent trees, key → record and index → records, and a slice of
// changes. A commit makes new roots under a lock. A snapshot is a copy of the roots. To
// open one costs nothing; to keep it costs the memory of what has been overwritten
// since.
package memdb

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// Options are the settings of a store. The zero value is good.
type Options struct {
	// LogLimit is how many changes of a namespace are kept, at least; 0 means
	// 1<<16.
	LogLimit int
	// Now tells the time for the kept log; nil means time.Now.
	Now func() time.Time
}

// Store is a database in memory. Make it with New.
type Store struct {
	options Options

	mu         sync.Mutex // guards what follows
	namespaces map[dbadapter.NamespaceID]*data
	closed     bool
}

// New returns an empty store.
func New(o Options) *Store {
	if o.LogLimit <= 0 {
		o.LogLimit = 1 << 16
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Store{options: o, namespaces: make(map[dbadapter.NamespaceID]*data)}
}

var _ dbadapter.Store = (*Store)(nil)

// Namespace opens a namespace; see dbadapter.Store. It must not be open.
func (s *Store) Namespace(ctx context.Context, id dbadapter.NamespaceID, hasher dbadapter.Hasher, observe func([]dbadapter.Change)) (dbadapter.Namespace, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("open namespace %x: the store is %w", id, dbadapter.ErrClosed)
	}
	d := s.namespaces[id]
	if d == nil {
		d = &data{logID: dbadapter.NewLogID()}
		s.namespaces[id] = d
	}
	if d.open != nil {
		return nil, fmt.Errorf("open namespace %x: %w; close it first", id, dbadapter.ErrLocked)
	}
	n := &namespace{store: s, id: id, hasher: hasher, observe: observe, data: d}
	d.open = n
	return n, nil
}

// Drop deletes a namespace; see dbadapter.Store.
func (s *Store) Drop(ctx context.Context, id dbadapter.NamespaceID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("drop namespace %x: the store is %w", id, dbadapter.ErrClosed)
	}
	if d := s.namespaces[id]; d != nil && d.open != nil {
		return fmt.Errorf("drop namespace %x: %w; close it first", id, dbadapter.ErrLocked)
	}
	delete(s.namespaces, id)
	return nil
}

// Compact implements dbadapter.Store: nothing stays of what was removed, but what
// an open snapshot shows.
func (s *Store) Compact(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("compact: the store is %w", dbadapter.ErrClosed)
	}
	return ctx.Err()
}

// Close closes the store, and with it its namespaces and snapshots.
func (s *Store) Close() error {
	s.mu.Lock()
	var open []*namespace
	for _, d := range s.namespaces {
		if d.open != nil {
			open = append(open, d.open)
		}
	}
	s.closed = true
	s.mu.Unlock()
	for _, n := range open {
		n.Close()
	}
	return nil
}

// Reopen returns a new store over the same data, as if this one had been
// closed and opened again. Tests use it.
func (s *Store) Reopen() *Store {
	s.Close()
	return &Store{options: s.options, namespaces: s.namespaces}
}
