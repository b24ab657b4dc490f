package metrics_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/syncd-io/syncd/internal/metrics"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
)

// everything is a state that has each gauge.
func everything() metrics.State {
	age := time.Minute
	return metrics.State{
		ClockOffset: &age,
		Peers:       []status.Peer{{Connected: true, Namespaces: []string{"notes"}}, {Paused: true, Namespaces: []string{"notes"}}},
		Troubles:    map[status.TroubleKind]bool{status.Away: true, status.DiskFull: false},
		Findings:    map[string]int64{"notes": 3},
		Namespaces: []metrics.Namespace{{
			Namespace: status.Namespace{Name: "notes", Damage: &status.Damage{}, Lost: &status.Lost{}, Shards: &status.Shards{Held: 4, Short: 2}},
			Unproved:  &age, Locator: &metrics.Locator{},
		}},
		Unserved: []status.Unserved{{Name: "old"}},
	}
}

// The names and help texts follow Prometheus' conventions.
func TestNames(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := metrics.New(metrics.Config{Registerer: registry, Node: "a", Dir: t.TempDir(), State: everything})
	if err != nil {
		t.Fatal(err)
	}
	m.Differences("notes", &reconcile.Report{})
	m.Collected("notes", status.Swept{})
	w := m.Stopwatch(slog.New(slog.DiscardHandler))
	w.Enter(reconcile.StepSketch)
	w.Stop()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "syncd_") {
			t.Errorf("%s does not begin with syncd_", f.GetName())
		}
	}
	if len(families) < 38 {
		t.Errorf("%d metrics are shown", len(families))
	}
	m.Unregister()
	if left, err := registry.Gather(); err != nil || len(left) > 0 {
		t.Errorf("%d metrics are left, %v", len(left), err)
	}
}
