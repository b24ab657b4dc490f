package testnet

import (
	"testing"

	"github.com/syncd-io/syncd/testnet/internal/plan"
)

// Runs by hash with a locator read keys that it calls nowhere, which the checker judges.
func TestLocatorIsAsked(t *testing.T) {
	runs, nowhere := 0, 0
	for seed := uint64(0); runs < 3 || nowhere == 0 && runs < 12; seed++ {
		p := plan.Generate(seed, plan.Shards, 0)
		if !p.Locator {
			continue
		}
		runs++
		res, wrong := once(t.Context(), Config{Seed: seed, Profile: string(plan.Shards)})
		if wrong != "" {
			t.Errorf("seed %d: %s", seed, wrong)
		}
		nowhere += res.Nowhere
	}
	if nowhere == 0 {
		t.Errorf("%d runs with a locator, and no read that it answered", runs)
	}
}
