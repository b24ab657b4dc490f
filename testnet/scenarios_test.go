package testnet_test

import (
	"strings"
	"testing"

	"github.com/syncd-io/syncd/testnet"
	"github.com/syncd-io/syncd/testnet/scenarios"
)

// Each scenario meets its expectations, twice, with the same trace.
func TestScenarios(t *testing.T) {
	all := scenarios.All()
	if len(all) < 12 {
		t.Fatalf("%d scenarios", len(all))
	}
	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			replay(t, s)
		})
	}
}

// Runs that failed once pass now.
func TestFound(t *testing.T) {
	for _, s := range scenarios.Found() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			replay(t, s)
		})
	}
}

func replay(t *testing.T, s scenarios.Scenario) {
	t.Helper()
	run := func() testnet.Result {
		res, err := testnet.Run(t.Context(), testnet.Config{Scenario: s.Text})
		if err != nil {
			t.Fatal(err)
		}
		if !res.Passed() {
			t.Errorf("it does not come to what it says: %s; violations %v; refused %v", strings.Join(res.Unmet, "; "), res.Violations, res.Refused)
		}
		return res
	}
	a, b := run(), run()
	if *a.TraceHash != *b.TraceHash || a.VirtualMS != b.VirtualMS || a.Sessions != b.Sessions || a.Converged != b.Converged {
		t.Errorf("two runs differ: %s after %d ms and %d sessions, %s after %d ms and %d sessions",
			*a.TraceHash, a.VirtualMS, a.Sessions, *b.TraceHash, b.VirtualMS, b.Sessions)
	}
	t.Logf("%d events, %d sessions, %d frames, refused %v, settled in %d ms, %.0f ms of wall time", a.Events, a.Sessions, a.Frames, a.Refused, a.SettledMS, a.WallMS)
}
