package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/peer"
)

const monitoring = "../../../../docs/monitoring/"

// named are the names of metrics in an expression of Prometheus; those of a histogram's
// parts stand for the histogram.
var named = regexp.MustCompile(`\b(syncd|process|go)_[a-z0-9_]+\b`)

// TestMonitoring: each metric that the dashboard and the alert rules name is served by a
// daemon that has synced, with the labels that they select; and what a daemon serves has
// a name that begins with syncd_ and ends with its unit.
func TestMonitoring(t *testing.T) {
	served := servedMetrics(t)
	for _, file := range []string{"dashboard.json", "alerts.yml", "alerts_test.yml"} {
		text, err := os.ReadFile(monitoring + file)
		if err != nil {
			t.Fatal(err)
		}
		names := named.FindAllString(string(text), -1)
		if len(names) < 10 {
			t.Errorf("%s names %d metrics", file, len(names))
		}
		for _, name := range names {
			if _, ok := served[histogram(name)]; !ok {
				t.Errorf("%s names %s, which is not served", file, name)
			}
		}
	}
	units := []string{"_total", "_seconds", "_bytes", "_records", "_members", "_syncs", "_namespaces", "_peers", "_info", "_damaged", "_shards", "_troubles"}
	for name := range served {
		if strings.HasPrefix(name, "syncd_") && !slices.ContainsFunc(units, func(u string) bool { return strings.HasSuffix(name, u) }) {
			t.Errorf("%s does not end with a unit", name)
		}
	}
	for name, label := range map[string]string{
		"syncd_differences_total": "kind", "syncd_syncs_total": "result", "syncd_verified_sync_age_seconds": "ns",
		"syncd_build_info": "version", "syncd_sync_bytes_total": "direction", "syncd_sync_repairs_total": "kind", "syncd_sync_step_duration_seconds": "step",
	} {
		if !slices.Contains(served[name], label) {
			t.Errorf("%s has the labels %v, and not %s", name, served[name], label)
		}
	}
}

// histogram is the name of the histogram of which a name is a part.
func histogram(name string) string {
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		name = strings.TrimSuffix(name, part)
	}
	return name
}

// servedMetrics are the metrics of a daemon that has synced, with their labels.
func servedMetrics(t *testing.T) map[string][]string {
	t.Helper()
	registry := newRegistry(buildVersion())
	var nodes [2]*peer.Node
	for i := range nodes {
		cfg := peer.Config{Dir: t.TempDir()}
		if i == 0 {
			cfg.Registerer = registry
		}
		n, err := peer.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close(t.Context())
		nodes[i] = n
	}
	ns, err := nodes[0].CreateNamespace(t.Context(), "notes", peer.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nodes[0].CreateNamespace(t.Context(), "packages", peer.Policy{Placement: &peer.Placement{Kind: "hash", Shards: 2, Replicas: 2}}); err != nil {
		t.Fatal(err)
	}
	ticket, err := ns.Invite(t.Context(), peer.InviteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := nodes[1].JoinSync(t.Context(), ticket, peer.SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := ns.Sync(t.Context(), nodes[1].ID(), peer.SyncOptions{}); err != nil { // it measures the clocks
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	served := map[string][]string{}
	for _, f := range families {
		served[f.GetName()] = []string{}
		for _, l := range f.GetMetric()[0].GetLabel() {
			served[f.GetName()] = append(served[f.GetName()], l.GetName())
		}
	}
	return served
}

// TestDashboard: the dashboard is JSON in which each panel asks something.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(monitoring + "dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Title  string
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil || dashboard.Title == "" || len(dashboard.Panels) == 0 {
		t.Fatalf("%q has %d panels, %v", dashboard.Title, len(dashboard.Panels), err)
	}
	rules := "groups:\n- name: panels\n  rules:\n"
	seen := map[int]bool{}
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 || seen[p.ID] {
			t.Errorf("panel %d, %s, asks nothing, or has the number of another", p.ID, p.Title)
		}
		seen[p.ID] = true
		for i, target := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$ns", ".*").Replace(target.Expr)
			rules += fmt.Sprintf("  - record: panel:%d:%d\n    expr: %q\n", p.ID, i, expr)
		}
	}
	file := filepath.Join(t.TempDir(), "panels.yml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}

// TestAlertRules: the rules are well formed, and raise the alerts that their tests say.
func TestAlertRules(t *testing.T) {
	promtool(t, "check", "rules", monitoring+"alerts.yml")
	promtool(t, "test", "rules", monitoring+"alerts_test.yml")
}

// promtool runs the tool of Debian's package prometheus.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		fmt.Fprintf(os.Stderr, "SKIPPED: %s needs promtool; install it: apt-get install prometheus\n", t.Name())
		t.Skip("promtool is not installed; install it: apt-get install prometheus")
	}
	if out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
