package peer

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/internal/node"
)

// One of three nodes has lost all statements of the list of members, as damage leaves a
// store: started again it lists all three, and syncs with both others.
func TestLostListIsPutBack(t *testing.T) {
	dir := t.TempDir()
	first, second, third := openForTest(t, Config{}), openForTest(t, Config{}), openForTest(t, Config{Dir: dir})
	a := createForTest(t, first, Policy{})
	joined := func(n *Node) *Namespace {
		ns := joinForTest(t, a, n, RoleWrite)
		return ns
	}
	b, c := joined(second), joined(third)
	if _, err := a.Sync(t.Context(), second.ID(), SyncOptions{}); err != nil { // it hears of the third
		t.Fatal(err)
	}
	lose := func() {
		snap, err := c.core.Control.Store.Snapshot()
		must(t, err)
		defer snap.Close()
		var writes []dbadapter.Write
		for r, err := range snap.Scan(t.Context(), []byte("s"), nil) {
			must(t, err)
			writes = append(writes, dbadapter.Write{Record: r, Action: dbadapter.Collect})
		}
		if _, err := c.core.Control.Store.Apply(t.Context(), writes); err != nil || len(writes) != 3 {
			t.Fatalf("%d statements: %v", len(writes), err)
		}
	}
	lose()
	for _, damaged := range []bool{false, true} {
		must(t, third.Close(t.Context()))
		if damaged { // alone, it does no harm
			must(t, os.WriteFile(filepath.Join(folder.Path(dir, c.ID()), folder.ListFile), []byte("x"), 0o600))
		}
		third = openForTest(t, Config{Dir: dir})
		c = notes(t, third)
		if n := len(c.Members()); n != 3 || c.Role() != RoleWrite {
			t.Fatalf("it lists %d members, and itself with the role %s", n, c.Info().Role)
		}
		for _, other := range []*Namespace{a, b} {
			must(t, errOf(third.Connect(t.Context(), other.node.Addrs()[0])))
			if _, err := c.Sync(t.Context(), other.node.ID(), SyncOptions{}); err != nil {
				t.Errorf("it calls another: %v", err)
			}
			if _, err := other.Sync(t.Context(), third.ID(), SyncOptions{}); err != nil {
				t.Errorf("another calls it: %v", err)
			}
		}
	}
	if c.core.Members().Role(node.ID(first.ID())) != node.RoleAdmin {
		t.Error("the first node is no admin")
	}
}
