package simulate

import (
	"testing"

	"github.com/syncd-io/syncd/testnet"
)

func TestNearest(t *testing.T) {
	for name, want := range map[string]string{
		"torn-lgo":       "torn-log",
		"partition":      "partition-and-heal",
		"clock-set-bakc": "clock-set-back",
		"":               "",
		"quite another":  "",
	} {
		if got := nearest(name); got != want {
			t.Errorf("near %q: %q, want %q", name, got, want)
		}
	}
}

// What is printed to replay a run is what was asked for, and nothing that
// decides the run is left out.
func TestReplay(t *testing.T) {
	res := &testnet.Result{Seed: 7}
	for want, c := range map[string]runCmd{
		"syncd-testnet run --seed 7":                                 {Profile: "mixed", Runs: 1},
		"syncd-testnet run --nodes 9 --seed 7 --profile rough":       {Profile: "rough", Nodes: 9, Runs: 1},
		"syncd-testnet run --scenario torn-log":                      {Profile: "mixed", Scenario: "torn-log", Runs: 1},
		"syncd-testnet run --scenario torn-log --seed 7":             {Profile: "mixed", Scenario: "torn-log", Runs: 2},
		"syncd-testnet run --scenario 'my files/it'\\''s' --nodes 2": {Profile: "mixed", Scenario: "my files/it's", Nodes: 2, Runs: 1},
	} {
		if got := c.replay(res); got != want {
			t.Errorf("%+v: %s, want %s", c, got, want)
		}
	}
}
