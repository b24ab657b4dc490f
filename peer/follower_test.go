package peer

import (
	"testing"
	"time"
)

// A namespace that is dropped leaves nothing behind that holds its memory.
func TestDroppedNamespacesAreForgotten(t *testing.T) {
	n := openForTest(t, Config{ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"}, SyncInterval: time.Hour})
	createForTest(t, n, Policy{})
	must(t, n.DropNamespace(t.Context(), "notes"))
	n.shards.Range(func(set, _ any) bool {
		t.Errorf("%p is still there", set)
		return true
	})
}
