package peer_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/peer"
)

// One node of three has a damaged sketch, and the sum of a range that is wrong: all
// three are equal in the end, and each keeps of its records what they say.
func TestDamageAmongThreeNodes(t *testing.T) {
	na, nb, nc := open(t, peer.Config{}), open(t, peer.Config{}), open(t, peer.Config{})
	sa := create(t, na, peer.Policy{})
	sets := []*peer.Namespace{sa, join(t, sa, nb, peer.RoleWrite), join(t, sa, nc, peer.RoleWrite)}
	circle := func() {
		t.Helper()
		for range 2 {
			sync1(t, sets[0], nb.ID())
			sync1(t, sets[1], nc.ID())
			sync1(t, sets[2], na.ID())
		}
		equal(t, sets[0], sets[1])
		equal(t, sets[0], sets[2])
	}
	for i := range 90 {
		put(t, sets[i%3], fmt.Sprint("k", i), "v")
	}
	circle()
	peer.Spoil(sets[1], true)
	peer.Spoil(sets[1], false)
	for i, ns := range sets {
		put(t, ns, fmt.Sprint("later ", i), "v")
	}
	r, err := sets[0].Sync(t.Context(), nb.ID(), peer.SyncOptions{})
	if err != nil || !r.Verified || !r.Repair.Sketch || r.Repair.Ranges != 1 || len(r.Listed) != 1 || r.Listed[0] != 5 || r.Repair.Digests != 0 {
		t.Errorf("%v, %+v", err, r)
	}
	eventually(t, "the end of the sync at the other side", func() bool { return peer.AuditIfDue(sets[1]) })
	if !peer.AuditIfDue(sets[0]) || peer.AuditIfDue(sets[2]) {
		t.Error("audits are not due where the sync was")
	}
	if r, err = sets[2].Sync(t.Context(), nb.ID(), peer.SyncOptions{}); err != nil || !r.Verified || r.Repair.Needed() {
		t.Errorf("once it is mended: %v, %+v", err, r)
	}
	circle()
	for i, ns := range sets {
		if err := ns.Audit(t.Context()); err != nil {
			t.Errorf("node %d: %v", i, err)
		}
	}
}

// What a sync repairs is counted and logged at both sides, each with what it has found;
// a sync that proves itself is not.
func TestRepairsAreCountedAndLogged(t *testing.T) {
	logs := [2]*lines{{}, {}}
	registries := [2]*prometheus.Registry{prometheus.NewRegistry(), prometheus.NewRegistry()}
	var configs [2]peer.Config
	for i := range configs {
		configs[i] = peer.Config{Logger: logs[i].logger(slog.LevelDebug), Registerer: registries[i]}
	}
	na, nb, sa, sb := pair(t, configs[0], configs[1], peer.Policy{})
	const line = "the cells of a sync did not prove themselves"
	want := func(what string, digests, sketches, ranges [2]float64, lines int) {
		t.Helper()
		for i, name := range []string{"a", "b"} {
			// A responder accounts for a sync after the initiator.
			eventually(t, what+", in the log of "+name, func() bool { return logs[i].with(line) >= lines })
			for label, want := range map[string]float64{"digest": digests[i], "sketch": sketches[i], "range": ranges[i], "collision": 0, "left": 0} {
				if got := counter(t, registries[i], "syncd_sync_repairs_total", label); got != want {
					t.Errorf("%s: %s counts %v %s, not %v", what, name, got, label, want)
				}
			}
			if got := logs[i].with(line); got != lines {
				t.Errorf("%s: %s has logged %d repairs, not %d", what, name, got, lines)
			}
		}
	}
	put(t, sa, "k", "1")
	sync1(t, sa, nb.ID())
	want("nothing", [2]float64{}, [2]float64{}, [2]float64{}, 0)
	peer.Spoil(sb, false)
	put(t, sa, "k", "2")
	sync1(t, sa, nb.ID())
	want("a sum of b", [2]float64{0, 1}, [2]float64{}, [2]float64{1, 1}, 1)
	for _, l := range logs {
		if l.with("ranges=1 first=[5]") != 1 {
			t.Error("the range is not named")
		}
	}
	if logs[0].with("digests=0") != 1 || logs[1].with("digests=1") != 1 {
		t.Error("the logs do not say whose sum was wrong")
	}
	peer.Spoil(sa, true)
	put(t, sa, "k", "3")
	sync1(t, sb, na.ID())
	want("a sketch of a", [2]float64{0, 1}, [2]float64{1, 1}, [2]float64{1, 1}, 2)
	if !peer.AuditIfDue(sa) || logs[0].with("had drifted, and is put right") != 1 || counter(t, registries[0], "syncd_audit_corrections_total", "") != 1 {
		t.Error("the audit of a is not due, or has found nothing")
	}
	put(t, sa, "k", "4")
	sync1(t, sb, na.ID())
	want("once it is mended", [2]float64{0, 1}, [2]float64{1, 1}, [2]float64{1, 1}, 2)
	equal(t, sa, sb)
}
