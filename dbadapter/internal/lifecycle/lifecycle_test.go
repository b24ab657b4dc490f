package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/syncd-io/syncd/dbadapter"
)

// closer counts how often it is closed.
type closer struct {
	n      *Namespace
	closed int
}

func (c *closer) Close() error {
	c.n.Closed(c)
	c.closed++
	return nil
}

// TestClose closes a namespace while a call runs, which opens a snapshot.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n Namespace
		if err := n.Enter("look", dbadapter.NamespaceID{1}); err != nil {
			t.Fatal(err)
		}
		ended := make(chan bool, 2)
		go func() { ended <- n.Close() }()
		synctest.Wait()
		if len(ended) > 0 {
			t.Error("a namespace is closed while a call runs")
		}
		if err := n.Enter("look", dbadapter.NamespaceID{1}); !errors.Is(err, dbadapter.ErrClosed) {
			t.Errorf("a call begins while the namespace is being closed: %v", err)
		}
		kept, gone := &closer{n: &n}, &closer{n: &n}
		n.Opened(kept)
		n.Opened(gone)
		gone.Close()
		n.Leave()
		if !<-ended || n.Close() {
			t.Error("the first of two calls closes")
		}
		if kept.closed != 1 || gone.closed != 1 {
			t.Errorf("a snapshot that was open was closed %d times, one that was closed %d times", kept.closed, gone.closed)
		}
	})
}

// TestReserve opens namespaces, and drops them, one at a time each.
func TestReserve(t *testing.T) {
	var s Store[*Namespace]
	a, b := dbadapter.NamespaceID{1}, dbadapter.NamespaceID{2}
	n := &Namespace{}
	if err := errors.Join(s.Reserve(a, n), s.Reserve(b, nil)); err != nil {
		t.Fatal(err)
	}
	for _, id := range []dbadapter.NamespaceID{a, b} {
		if err := s.Reserve(id, n); !errors.Is(err, dbadapter.ErrLocked) {
			t.Errorf("a namespace is reserved twice: %v", err)
		}
	}
	if open := s.Open(); !slices.Equal(open, []*Namespace{n}) {
		t.Errorf("%d namespaces are open, want the one that is not being dropped", len(open))
	}
	s.Release(b)
	if err := errors.Join(s.Reserve(b, nil), s.Err()); err != nil {
		t.Errorf("after its release: %v", err)
	}
	s.Release(b)
	s.Close()
	if err := s.Reserve(b, nil); !errors.Is(err, dbadapter.ErrClosed) || !errors.Is(s.Err(), dbadapter.ErrClosed) {
		t.Errorf("a namespace of a closed store is opened: %v", err)
	}
}

// marks are dropped namespaces, of which one cannot be erased.
type marks struct {
	numbers []uint32
	bad     uint32
}

func (m *marks) Next(_ context.Context, above uint32) (uint32, error) {
	at, found := slices.BinarySearch(m.numbers, above)
	if found {
		at++
	}
	return append(m.numbers[at:len(m.numbers):len(m.numbers)], 0)[0], nil
}

func (m *marks) Erase(_ context.Context, number uint32) error {
	if number == m.bad {
		return fmt.Errorf("number %d cannot be erased", number)
	}
	m.numbers = slices.DeleteFunc(m.numbers, func(n uint32) bool { return n == number })
	return nil
}

// TestEraser erases what was dropped before and after it is started, and past a number
// that cannot be erased.
func TestEraser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &marks{numbers: []uint32{1, 2, 5}, bad: 2}
		e := StartEraser(m, slog.New(slog.NewTextHandler(io.Discard, nil)))
		defer e.Close()
		synctest.Wait()
		if !slices.Equal(m.numbers, []uint32{2}) {
			t.Errorf("%d are left, want 2", m.numbers)
		}
		m.numbers, m.bad = append(m.numbers, 6), 0
		e.Look()
		synctest.Wait()
		if len(m.numbers) > 0 {
			t.Errorf("%d are left", m.numbers)
		}
	})
}
