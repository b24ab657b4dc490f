// Package memdb is a store in memory, for tests, simulations and caches:
//
//	store := memdb.New(memdb.Options{})
//
// It keeps all promises of dbadapter.Store but durability: the records are gone
// with the process.
//
// A namespace is two trees, key → record and index → records, and a slice of changes. A
// commit changes them under a lock. A snapshot is a clone of the trees, which share what has
// not been written since. To open one costs nothing; to keep it costs the memory of what
// has been overwritten since.
package memdb

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/grouped"
	"github.com/syncd-io/syncd/dbadapter/internal/lifecycle"
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
	life    lifecycle.Store[*namespace]

	mu         sync.Mutex // guards what follows
	namespaces map[dbadapter.NamespaceID]*data
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
	n := &namespace{store: s}
	n.Namespace = grouped.Namespace[*namespace]{
		Self: n, ID: id, Hasher: hasher, Observe: observe, Submit: n.commit, Do: n.locked, Lock: &n.mu,
	}
	if err := s.life.Make(ctx, id, n, n.load); err != nil {
		return nil, err
	}
	return n, nil
}

// Drop deletes a namespace; see dbadapter.Store.
func (s *Store) Drop(ctx context.Context, id dbadapter.NamespaceID) error {
	return s.life.Drop(ctx, id, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.namespaces, id)
		return nil
	})
}

// Compact implements dbadapter.Store: nothing stays of what was removed, but what
// an open snapshot shows.
func (s *Store) Compact(ctx context.Context) error {
	if err := s.life.Err(); err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	return ctx.Err()
}

// Close closes the store, and with it its namespaces and snapshots.
func (s *Store) Close() error {
	s.life.Close()
	for _, n := range s.life.Open() {
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
