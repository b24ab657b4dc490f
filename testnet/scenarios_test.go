package testnet_test

import (
	"strings"
	"testing"

	"github.com/syncd-io/syncd/testnet"
	"github.com/syncd-io/syncd/testnet/scenarios"
)

// shows is what scenarios have at the least that are about it.
var shows = map[string]testnet.Result{
	"parts-cut":           {Parts: 20},
	"kept-sums-flipped":   {Repairs: 4},
	"kept-cells-flipped":  {Repairs: 2},
	"false-peel":          {Repairs: 2},
	"short-check":         {Repairs: 2},
	"colliding-checksums": {Repairs: 3},
	// Three nodes are full of different keys of one index: 103 that are not deleted. Each
	// holds 64 of them, and lists the others.
	"full-index": {Full: 3 * (103 - 64)},
}

// Each scenario meets its expectations, twice, with the same trace.
func TestScenarios(t *testing.T) {
	for name := range shows {
		if _, ok := scenarios.Find(name); !ok {
			t.Errorf("there is no scenario %s", name)
		}
	}
	for _, s := range scenarios.All() {
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
	if least := shows[s.Name]; a.Parts < least.Parts || a.Repairs < least.Repairs || least.Full > 0 && (a.Full != least.Full || a.Refused["limit"] == 0) {
		t.Errorf("it has %d parts, %d repairs, and %d records without room; want %+v", a.Parts, a.Repairs, a.Full, least)
	}
	t.Logf("%d events, %d sessions, %d frames, refused %v, settled in %d ms, %.0f ms of wall time", a.Events, a.Sessions, a.Frames, a.Refused, a.SettledMS, a.WallMS)
}
