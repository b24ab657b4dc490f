package peer

import (
	"context"
	"testing"
	"time"
)

// A namespace that is dropped leaves nothing behind that holds its memory.
func TestDroppedNamespacesAreForgotten(t *testing.T) {
	n := openFollowed(t)
	if err := n.DropNamespace(t.Context(), "notes"); err != nil {
		t.Fatal(err)
	}
	n.shards.Range(func(set, _ any) bool {
		t.Errorf("%p is still there", set)
		return true
	})
}

// openFollowed is a node with a namespace.
func openFollowed(t *testing.T) *Node {
	n, err := Open(t.Context(), Config{ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"}, SyncInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if _, err := n.CreateNamespace(t.Context(), "notes", Policy{}); err != nil {
		t.Fatal(err)
	}
	return n
}
