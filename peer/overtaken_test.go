package peer

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/internal/node"
)

// hookedStore calls a hook when a commit begins, its versions made.
type hookedStore struct {
	dbadapter.Store
	hook func([]dbadapter.Write)
}

type hookedNamespace struct {
	dbadapter.Namespace
	store *hookedStore
}

func (s *hookedStore) Namespace(ctx context.Context, id dbadapter.NamespaceID, h dbadapter.Hasher, observe func([]dbadapter.Change)) (dbadapter.Namespace, error) {
	ns, err := s.Store.Namespace(ctx, id, h, observe)
	return hookedNamespace{ns, s}, err
}

func (n hookedNamespace) Apply(ctx context.Context, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
	if n.store.hook != nil {
		n.store.hook(writes)
	}
	return n.Namespace.Apply(ctx, writes)
}

// waitsForCommits reports whether what comes from elsewhere waits for the
// namespace's commits, which are held.
func waitsForCommits() bool {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for one := range strings.SplitSeq(string(stacks), "\n\n") {
		head, frames, _ := strings.Cut(one, "\n")
		if strings.Contains(head, "[sync.") && (strings.Contains(frames, "node.(*Set).past(") || strings.Contains(frames, "node.(*Import).Hold(")) {
			return true
		}
	}
	return false
}

// No record from elsewhere, of a later version, comes between the making of the versions
// of a batch and its commit: it is written whole. A put may be overtaken so by a record
// from a peer, and is made anew then, once.
func TestNoWriteIsOvertaken(t *testing.T) {
	memory := memdb.New(memdb.Options{})
	defer memory.Close()
	store := &hookedStore{Store: memory}
	n, err := Open(t.Context(), Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close(context.Background())
	ns, err := n.CreateNamespace(t.Context(), "notes", Policy{Unsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := map[string]func(key []byte, at dbadapter.Timestamp) error{
		"from a peer": func(key []byte, at dbadapter.Timestamp) error {
			r, err := dbadapter.Hash(ns.shards()[0].set.Keys.Hasher, dbadapter.Record{Key: key, Value: []byte("theirs"), Version: dbadapter.Version{Clock: at, Writer: 7}})
			if err == nil {
				_, err = ns.shards()[0].set.Admit(t.Context(), node.ID(n.self.id), 0, 0, []dbadapter.Hashed{r})()
			}
			return err
		},
		"imported": func(key []byte, at dbadapter.Timestamp) error {
			_, err := ns.Import(t.Context(), func(yield func(Item, error) bool) {
				yield(Item{Key: key, Value: []byte("theirs"), Time: at.Time()}, nil)
			})
			return err
		},
	}
	writes := map[string]func(key []byte) error{
		"put": func(key []byte) error { _, err := ns.Put(t.Context(), key, []byte("ours")); return err },
		"batch": func(key []byte) error {
			return ns.Batch(t.Context(), func(b *Batch) error {
				b.Put(key, []byte("ours"))
				b.Put([]byte("another"), []byte("ours"))
				return nil
			})
		},
	}
	ahead := time.Second
	for what, write := range writes {
		for whence, come := range elsewhere {
			key := []byte(what + " " + whence)
			var attempts atomic.Int32
			came := make(chan error, 1)
			store.hook = func(writes []dbadapter.Write) {
				if !bytes.Equal(writes[0].Record.Value, []byte("ours")) || attempts.Add(1) > 1 {
					return
				}
				ahead += time.Second // later than all before it
				at := dbadapter.TimestampAt(n.now().Add(ahead))
				go func() { came <- come(key, at) }()
				// Until it is in, or waits for its turn.
				waitFor(t, "it is in, or waits", func() bool { return len(came) > 0 || waitsForCommits() })
			}
			err := write(key)
			overtaken := what == "put" && whence == "from a peer" && attempts.Load() == 2
			if err != nil || attempts.Load() != 1 && !overtaken {
				t.Errorf("%s, with a record %s: %v after %d attempts", what, whence, err, attempts.Load())
			}
			if err := <-came; err != nil {
				t.Errorf("a record %s: %v", whence, err)
			}
			last := map[bool]string{true: "ours", false: "theirs"}[overtaken] // the later one
			if rec, err := ns.Get(t.Context(), key); err != nil || string(rec.Value) != last {
				t.Errorf("%s, with a later record %s: %q, %v", what, whence, rec.Value, err)
			}
		}
	}
	// What the clock has not heard of is named, not passed over.
	store.hook = nil
	err = ns.Force(t.Context(), dbadapter.Record{Key: []byte("far"), Version: dbadapter.Version{Clock: dbadapter.TimestampAt(n.now().Add(time.Hour)), Writer: 7}})
	if err != nil {
		t.Fatal(err)
	}
	if err := writes["batch"]([]byte("far")); !errors.Is(err, ErrFutureVersion) {
		t.Errorf("a batch that is dominated: %v", err)
	}
}
