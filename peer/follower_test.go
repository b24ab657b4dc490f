package peer

import (
	"context"
	"testing"
	"time"
)

// A namespace that is dropped leaves nothing behind that holds its memory.
func TestDroppedNamespacesAreForgotten(t *testing.T) {
	n := openFollowed(t)
	must(t, n.DropNamespace(t.Context(), "notes"))
	n.shards.Range(func(set, _ any) bool {
		t.Errorf("%p is still there", set)
		return true
	})
}

// openFollowed is a node with a namespace.
func openFollowed(t *testing.T) *Node {
	n, err := Open(t.Context(), Config{ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"}, SyncInterval: time.Hour})
	must(t, err)
	t.Cleanup(func() {
		if err := n.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	must(t, errOf(n.CreateNamespace(t.Context(), "notes", Policy{})))
	return n
}
