package peer_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/syncd-io/syncd/peer"
)

// A restored node may lack what the original has told the members that it holds: it
// vouches for nothing before it has caught up, also after another start. One that
// has the namespace for itself has nothing to catch up with.
func TestRestoredNodeRecovers(t *testing.T) {
	a, _, sa, _ := pair(t, peer.Config{Dir: t.TempDir()}, peer.Config{}, peer.Policy{})
	if _, err := a.CreateNamespace(t.Context(), "alone", peer.Policy{}); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "backups")
	backUp(t, a, to)
	shut(t, a)
	dir := restore(t, to, 0)
	for range 2 {
		a = open(t, peer.Config{Dir: dir})
		shared, err := a.Namespace(sa.Name())
		if err != nil {
			t.Fatal(err)
		}
		alone, err := a.Namespace("alone")
		if err != nil {
			t.Fatal(err)
		}
		if !shared.Collection().Recovering || alone.Collection().Recovering {
			t.Errorf("recovering: %v, and alone %v", shared.Collection().Recovering, alone.Collection().Recovering)
		}
		if _, err := os.Stat(filepath.Join(dir, "restored")); !os.IsNotExist(err) {
			t.Errorf("the note of the restore: %v", err)
		}
		shut(t, a)
	}
}
