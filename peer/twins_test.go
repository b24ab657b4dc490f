package peer_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/peer"
)

// A copy of a data folder that runs beside the original: a third node finds it, and
// both twins are told what to do. With an identity of its own the copy is no twin.
func TestTwinsAreToldSo(t *testing.T) {
	registry := prometheus.NewRegistry()
	na := open(t, peer.Config{Registerer: registry})
	sa := create(t, na, peer.Policy{})
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	nb, err := peer.Open(t.Context(), peer.Config{Dir: dir})
	must(t, err)
	sb := join(t, sa, nb, peer.RoleWrite)
	put(t, sb, "k", "of b")
	sync1(t, sb, na.ID())
	id := nb.ID()
	shut(t, nb)
	peer.CopyNode(t, dir, copied)
	var twins []*peer.Namespace
	for _, d := range []string{dir, copied} {
		ns, err := open(t, peer.Config{Dir: d}).Namespace("notes")
		must(t, err)
		twins = append(twins, ns)
	}
	told := map[int]error{}
	for turn := 0; len(told) < 2; turn++ {
		if turn == 20 {
			t.Fatal("a has not found the twins")
		}
		n := turn % 2
		if _, err := twins[n].Sync(t.Context(), na.ID(), peer.SyncOptions{}); errors.Is(err, peer.ErrTwin) {
			told[n] = err
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for n, ns := range twins {
		if err := told[n]; !strings.Contains(err.Error(), "syncd init --new-identity") || !strings.Contains(err.Error(), na.ID().String()) {
			t.Errorf("twin %d is told %v", n, err)
		}
		if w := ns.Info().Twinned; w == nil || w.By != na.ID() || w.At.IsZero() {
			t.Errorf("twin %d has heard %+v", n, w)
		}
	}
	if found := sa.Info().Twins; len(found) != 1 || found[0].ID != id || found[0].Heard[0].Before(found[0].Heard[1]) {
		t.Errorf("a has found %+v", found)
	}
	if v, ok := gathered(t, registry, "syncd_twin_members", "notes"); !ok || v != 1 {
		t.Errorf("the metric is %v, %t", v, ok)
	}
	// a calls neither of them, either, and says why.
	if _, err := sa.Sync(t.Context(), id, peer.SyncOptions{}); !errors.Is(err, peer.ErrTwin) || !strings.Contains(err.Error(), "syncd init --new-identity") {
		t.Errorf("a's own sync: %v", err)
	}
	if sa.Info().Twinned != nil {
		t.Error("a takes itself for a twin")
	}
}
