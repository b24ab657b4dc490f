package peer_test

import (
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/peer"
)

// What a sync repairs is counted and logged at both sides, each with what it has found;
// a sync that proves itself is not.
func TestRepairsAreCountedAndLogged(t *testing.T) {
	logs := [2]*peer.Log{{}, {}}
	registries := [2]*prometheus.Registry{prometheus.NewRegistry(), prometheus.NewRegistry()}
	var configs [2]peer.Config
	for i := range configs {
		configs[i] = peer.Config{Logger: logs[i].Logger(slog.LevelDebug), Registerer: registries[i]}
	}
	na, nb, sa, sb := pair(t, configs[0], configs[1], peer.Policy{})
	const line = "the cells of a sync did not prove themselves"
	want := func(what string, digests, sketches, ranges [2]float64, lines int) {
		t.Helper()
		for i, name := range []string{"a", "b"} {
			// A responder accounts for a sync after the initiator.
			eventually(t, what+", in the log of "+name, func() bool { return logs[i].With(line) >= lines })
			for label, want := range map[string]float64{"digest": digests[i], "sketch": sketches[i], "range": ranges[i], "collision": 0, "left": 0} {
				if got := metricOf(t, registries[i], "syncd_sync_repairs_total", label); got != want {
					t.Errorf("%s: %s counts %v %s, not %v", what, name, got, label, want)
				}
			}
			if got := logs[i].With(line); got != lines {
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
		if l.With("ranges=1 first=[5]") != 1 {
			t.Error("the range is not named")
		}
	}
	if logs[0].With("digests=0") != 1 || logs[1].With("digests=1") != 1 {
		t.Error("the logs do not say whose sum was wrong")
	}
	peer.Spoil(sa, true)
	put(t, sa, "k", "3")
	sync1(t, sb, na.ID())
	want("a sketch of a", [2]float64{0, 1}, [2]float64{1, 1}, [2]float64{1, 1}, 2)
	if !peer.AuditIfDue(sa) || logs[0].With("had drifted, and is put right") != 1 || metricOf(t, registries[0], "syncd_audit_corrections_total", "") != 1 {
		t.Error("the audit of a is not due, or has found nothing")
	}
	put(t, sa, "k", "4")
	sync1(t, sb, na.ID())
	want("once it is mended", [2]float64{0, 1}, [2]float64{1, 1}, [2]float64{1, 1}, 2)
	equal(t, sa, sb)
}
