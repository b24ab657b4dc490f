package testnet

import (
	"testing"

	"github.com/syncd-io/syncd/testnet/internal/check"
	"github.com/syncd-io/syncd/testnet/internal/plan"
)

// A tape has the trace of its run, and expects the outcome of the drawn plan.
func TestTape(t *testing.T) {
	t.Parallel()
	damaged := 0
	for seed := uint64(0); seed < 5 || damaged == 0 && seed < 100; seed++ {
		first, err := Run(t.Context(), Config{Seed: seed, Profile: string(plan.Disks)})
		if err != nil {
			t.Fatal(err)
		}
		again, err := Run(t.Context(), Config{Scenario: first.Tape()})
		if err != nil {
			t.Fatalf("seed %d: its tape does not run: %v", seed, err)
		}
		if *again.TraceHash != *first.TraceHash || again.Seed != seed || again.Scenario != first.Scenario {
			t.Errorf("seed %d left the trace %s, its tape %s, of seed %d and %q", seed, *first.TraceHash, *again.TraceHash, again.Seed, again.Scenario)
		}
		if !first.Passed() || !again.Passed() {
			t.Errorf("seed %d: unmet %v, and of the tape %v; violations %v", seed, first.Unmet, again.Unmet, first.Violations)
		}
		damaged += len(first.Damaged)
	}
	if damaged == 0 {
		t.Error("no run damaged data: this test shows less than it should")
	}
}

// A tape expects damage by the plan, and no other.
func TestFlipped(t *testing.T) {
	r := Result{Damaged: []int{1, 4}, Violations: []Violation{{Rule: ruleDamage, Node: 1}, {Rule: check.Durable, Node: 4}}}
	if got := r.flipped(); len(got) != 1 || got[0] != 4 {
		t.Errorf("%v, want node 4 alone", got)
	}
}
