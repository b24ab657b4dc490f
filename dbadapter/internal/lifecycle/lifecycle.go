// Package lifecycle keeps account of what is open in a store: its namespaces, and the
// running calls and the snapshots of each. Closing the store then ends all of them, each
// after what it waits for, and a namespace is open once. What a dropped namespace leaves
// behind is erased in the background.
package lifecycle

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
)

// Store is the account of a store, whose namespaces are of type N, a pointer. The zero
// value is ready for use.
type Store[N comparable] struct {
	mu     sync.Mutex // guards what follows
	open   map[dbadapter.NamespaceID]N
	closed bool
}

// Reserve keeps others from opening or dropping a namespace until Release. n is nil if
// it is not opened, but dropped.
func (s *Store[N]) Reserve(id dbadapter.NamespaceID, n N) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed()
	}
	if _, ok := s.open[id]; ok {
		return fmt.Errorf("%w; close it first", dbadapter.ErrLocked)
	}
	if s.open == nil {
		s.open = make(map[dbadapter.NamespaceID]N)
	}
	s.open[id] = n
	return nil
}

// Make opens a namespace: it reserves it and loads it.
func (s *Store[N]) Make(ctx context.Context, id dbadapter.NamespaceID, n N, load func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.Reserve(id, n); err != nil {
		return fmt.Errorf("open namespace %x: %w", id, err)
	}
	if err := load(); err != nil {
		s.Release(id)
		return fmt.Errorf("open namespace %x: %w", id, err)
	}
	return nil
}

// Drop drops a namespace, which must not be open: unname takes its name away.
func (s *Store[N]) Drop(ctx context.Context, id dbadapter.NamespaceID, unname func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var none N
	err := s.Reserve(id, none)
	if err == nil {
		err = unname()
		s.Release(id)
	}
	if err != nil {
		return fmt.Errorf("drop namespace %x: %w", id, err)
	}
	return nil
}

// Release ends what Reserve has begun.
func (s *Store[N]) Release(id dbadapter.NamespaceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, id)
}

// Close lets no more namespaces be opened or dropped. Those that are open stay so.
func (s *Store[N]) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// Err is ErrClosed once the store is closed.
func (s *Store[N]) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed()
	}
	return nil
}

func errClosed() error { return fmt.Errorf("the store is %w", dbadapter.ErrClosed) }

// Open are the namespaces that are open, or being opened, in no order.
func (s *Store[N]) Open() []N {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []N
	var dropped N
	for _, n := range s.open {
		if n != dropped {
			all = append(all, n)
		}
	}
	return all
}

// Namespace is the account of an open namespace. The zero value is ready for use.
type Namespace struct {
	// mu guards what follows. No other lock is taken under it: a caller may close a
	// snapshot while it holds a lock that observers wait for.
	mu        sync.Mutex
	closed    bool
	snapshots map[io.Closer]struct{}
	calls     sync.WaitGroup // added to under mu, while not closed
}

// Enter begins a call, which Close waits for; Leave ends it. what and id are for the
// error.
func (n *Namespace) Enter(what string, id dbadapter.NamespaceID) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return fmt.Errorf("%s: namespace %x is %w", what, id, dbadapter.ErrClosed)
	}
	n.calls.Add(1)
	return nil
}

// Leave ends a call.
func (n *Namespace) Leave() { n.calls.Done() }

// Opened takes a snapshot into the account, during a call.
func (n *Namespace) Opened(snapshot io.Closer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.snapshots == nil {
		n.snapshots = make(map[io.Closer]struct{})
	}
	n.snapshots[snapshot] = struct{}{}
}

// Closed takes a snapshot out of the account.
func (n *Namespace) Closed(snapshot io.Closer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.snapshots, snapshot)
}

// Close lets no more calls begin, waits for those that run, and then closes all
// snapshots. It reports whether this call is the first one.
func (n *Namespace) Close() (first bool) {
	n.mu.Lock()
	first = !n.closed
	n.closed = true
	n.mu.Unlock()
	if !first {
		return false
	}
	n.calls.Wait()
	n.EndSnapshots()
	return true
}

// EndSnapshots closes the snapshots that are open.
func (n *Namespace) EndSnapshots() {
	n.mu.Lock()
	snapshots := n.snapshots
	n.snapshots = nil
	n.mu.Unlock()
	for s := range snapshots {
		s.Close()
	}
}
