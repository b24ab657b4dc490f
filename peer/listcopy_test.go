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
	a, err := first.CreateNamespace(t.Context(), "notes", Policy{})
	if err != nil {
		t.Fatal(err)
	}
	joined := func(n *Node) *Namespace {
		ticket, err := a.Invite(t.Context(), InviteOptions{Role: RoleWrite})
		if err != nil {
			t.Fatal(err)
		}
		ns, err := n.Join(t.Context(), ticket)
		if err != nil {
			t.Fatal(err)
		}
		return ns
	}
	b, c := joined(second), joined(third)
	if _, err := a.Sync(t.Context(), second.ID(), SyncOptions{}); err != nil { // it hears of the third
		t.Fatal(err)
	}
	lose := func() {
		snap, err := c.core.Control.Store.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		defer snap.Close()
		var writes []dbadapter.Write
		for r, err := range snap.Scan(t.Context(), []byte("s"), nil) {
			if err != nil {
				t.Fatal(err)
			}
			writes = append(writes, dbadapter.Write{Record: r, Action: dbadapter.Collect})
		}
		if _, err := c.core.Control.Store.Apply(t.Context(), writes); err != nil || len(writes) != 3 {
			t.Fatalf("%d statements: %v", len(writes), err)
		}
	}
	lose()
	for _, damaged := range []bool{false, true} {
		if err := third.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if damaged { // alone, it does no harm
			if err := os.WriteFile(filepath.Join(folder.Path(dir, c.ID()), folder.ListFile), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		third = openForTest(t, Config{Dir: dir})
		if c, err = third.Namespace("notes"); err != nil {
			t.Fatal(err)
		}
		if n := len(c.Members()); n != 3 || c.Role() != RoleWrite {
			t.Fatalf("it lists %d members, and itself with the role %s", n, c.Info().Role)
		}
		for _, other := range []*Namespace{a, b} {
			if _, err := third.Connect(t.Context(), other.node.Addrs()[0]); err != nil {
				t.Fatal(err)
			}
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
