package peer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
)

// hookedNotes is a namespace whose commits call a hook.
func hookedNotes(t *testing.T) (*hookedStore, *Namespace) {
	t.Helper()
	memory := memdb.New(memdb.Options{})
	t.Cleanup(func() { memory.Close() })
	store := &hookedStore{Store: memory}
	n, err := Open(t.Context(), Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close(context.Background()) })
	ns, err := n.CreateNamespace(t.Context(), "notes", Policy{})
	if err != nil {
		t.Fatal(err)
	}
	return store, ns
}

// While a batch of an import commits, the next one is read, and given its versions
// and signatures, and the one after it is read.
func TestImportOverlaps(t *testing.T) {
	store, ns := hookedNotes(t)
	var read atomic.Int64
	const batch, all = dbadapter.MaxBatch, 3*dbadapter.MaxBatch + 5
	var commits atomic.Int64 // of which two may be under way
	store.hook = func(writes []dbadapter.Write) {
		if commits.Add(1) == 1 {
			waitFor(t, "two more batches are read", func() bool { return read.Load() > 3*batch })
		}
	}
	r, err := ns.Import(t.Context(), func(yield func(Item, error) bool) {
		for i := range all {
			read.Add(1)
			if !yield(Item{Key: fmt.Append(nil, i), Value: []byte("v")}, nil) {
				return
			}
		}
	})
	if err != nil || r.Written != all || commits.Load() != all/batch+1 {
		t.Errorf("%+v in %d commits, %v", r, commits.Load(), err)
	}
}

// A write that waits for the namespace's commits comes in between two batches of an
// import that has more.
func TestImportLetsWritesIn(t *testing.T) {
	_, ns := hookedNotes(t)
	var put atomic.Bool
	result := make(chan error, 1)
	r, err := ns.Import(t.Context(), func(yield func(Item, error) bool) {
		for i := 0; i < 250*dbadapter.MaxBatch && !put.Load(); i++ {
			if i == 3*dbadapter.MaxBatch {
				go func() {
					_, err := ns.Put(t.Context(), []byte("urgent"), nil)
					put.Store(true)
					result <- err
				}()
			}
			if !yield(Item{Key: fmt.Append(nil, i), Value: []byte("v")}, nil) {
				return
			}
		}
	})
	if err != nil || r.Items >= 250*dbadapter.MaxBatch {
		t.Errorf("a write waited for the whole import: %+v, %v", r, err)
	}
	if err := <-result; err != nil {
		t.Error(err)
	}
}

// refusingStore refuses a whole batch of an import whose records do not expire, once one
// of those that do is there.
type refusingStore struct {
	dbadapter.Store
	batch  int // writes of a whole batch
	behind chan struct{}
}

type refusingNamespace struct {
	dbadapter.Namespace
	store *refusingStore
}

func (s *refusingStore) Namespace(ctx context.Context, id dbadapter.NamespaceID, h dbadapter.Hasher, observe func([]dbadapter.Change)) (dbadapter.Namespace, error) {
	ns, err := s.Store.Namespace(ctx, id, h, observe)
	return refusingNamespace{ns, s}, err
}

var errRefused = errors.New("refused")

func (n refusingNamespace) Apply(ctx context.Context, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
	if len(writes) != n.store.batch {
		return n.Namespace.Apply(ctx, writes)
	}
	if writes[0].Record.Expires == 0 {
		select {
		case <-n.store.behind:
		case <-time.After(5 * time.Minute):
		}
		return nil, errRefused
	}
	defer close(n.store.behind)
	return n.Namespace.Apply(ctx, writes)
}

// A batch that is there behind one that failed is taken note of, as each commit is: a
// collection finds what it has that expires. The result does not count it, so that an
// import that goes on behind the items of the result writes those that failed.
func TestImportBehindAFailure(t *testing.T) {
	memory := memdb.New(memdb.Options{})
	defer memory.Close()
	const batch = dbadapter.MaxBatch
	n, err := Open(t.Context(), Config{Store: &refusingStore{Store: memory, batch: batch, behind: make(chan struct{})}})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close(context.Background())
	ns, err := n.CreateNamespace(t.Context(), "notes", Policy{Unsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	expires := time.Now().Add(time.Hour)
	r, err := ns.Import(t.Context(), func(yield func(Item, error) bool) {
		for i := range 2 * batch {
			item := Item{Key: fmt.Append(nil, i), Value: []byte("v")}
			if i >= batch {
				item.Expires = expires
			}
			if !yield(item, nil) {
				return
			}
		}
	})
	if !errors.Is(err, errRefused) || r != (ImportResult{}) {
		t.Errorf("%+v, %v", r, err)
	}
	if held, waiting := ns.Info().Records, ns.Collection().Waiting; held != batch || waiting != batch {
		t.Errorf("%d records are there, and %d are known to expire; want %d", held, waiting, batch)
	}
}
