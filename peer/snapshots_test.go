package peer_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/peer"
)

// snapshotCounter is a store that counts its open snapshots.
type snapshotCounter struct {
	dbadapter.Store
	open, opened atomic.Int64
}

func (s *snapshotCounter) Namespace(ctx context.Context, id dbadapter.NamespaceID, h dbadapter.Hasher, observe func([]dbadapter.Change)) (dbadapter.Namespace, error) {
	ns, err := s.Store.Namespace(ctx, id, h, observe)
	return &countedNamespace{ns, s}, err
}

type countedNamespace struct {
	dbadapter.Namespace
	of *snapshotCounter
}

func (ns *countedNamespace) Snapshot() (dbadapter.Snapshot, error) {
	snap, err := ns.Namespace.Snapshot()
	if err != nil {
		return nil, err
	}
	ns.of.open.Add(1)
	ns.of.opened.Add(1)
	return &countedSnapshot{Snapshot: snap, of: ns.of}, nil
}

type countedSnapshot struct {
	dbadapter.Snapshot
	of     *snapshotCounter
	closed atomic.Bool
}

func (s *countedSnapshot) Close() error {
	if s.closed.CompareAndSwap(false, true) {
		s.of.open.Add(-1)
	}
	return s.Snapshot.Close()
}

// However a peer ends a sync, the snapshot that the sync has opened is closed.
func TestSyncClosesItsSnapshot(t *testing.T) {
	store := &snapshotCounter{Store: memdb.New(memdb.Options{})}
	defer store.Store.Close()
	n := open(t, peer.Config{Store: store, Limits: peer.Limits{IdleTimeout: 50 * time.Millisecond}})
	ns := create(t, n, peer.Policy{})
	put(t, ns, "key", "value")
	release := make(chan struct{})
	defer close(release)
	for name, handler := range map[string]network.StreamHandler{
		"answers the dial and refuses the stream": nil,
		"resets the stream":                       func(s network.Stream) { s.Reset() },
		"closes the stream":                       func(s network.Stream) { s.Close() },
		"says nothing":                            func(s network.Stream) { <-release; s.Reset() },
		"says rubbish":                            func(s network.Stream) { s.Write([]byte("HTTP/1.1 400 Bad Request\r\n")); s.Close() },
	} {
		for _, prefix := range []string{"", "k"} {
			h := rawHost(t)
			if handler != nil {
				h.SetStreamHandler(peer.SyncProtocol, handler)
			}
			dialNode(t, h, n)
			must(t, ns.SetRole(t.Context(), h.ID(), peer.RoleWrite))
			before := store.opened.Load()
			_, err := ns.Sync(t.Context(), h.ID(), peer.SyncOptions{Prefix: []byte(prefix)})
			if err == nil || (handler == nil && !errors.Is(err, peer.ErrUnreachable)) {
				t.Errorf("a peer that %s, prefix %q: %v", name, prefix, err)
			}
			if store.opened.Load() == before {
				t.Errorf("a peer that %s, prefix %q: no snapshot was opened", name, prefix)
			}
			if left := store.open.Load(); left != 0 {
				t.Errorf("a peer that %s, prefix %q: %d snapshots are left open", name, prefix, left)
			}
		}
	}
}
