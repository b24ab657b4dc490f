package testnet

import (
	"testing"

	"github.com/syncd-io/syncd/testnet/scenarios"
)

// The scenarios of damage have syncs that repair something.
func TestDamageIsRepaired(t *testing.T) {
	least := map[string]int{"kept-sums-flipped": 4, "kept-cells-flipped": 2, "false-peel": 2, "short-check": 2, "colliding-checksums": 3}
	for _, s := range scenarios.All() {
		if least[s.Name] == 0 {
			continue
		}
		result, err := Run(t.Context(), Config{Scenario: s.Text})
		if err != nil || result.Repairs < least[s.Name] || !result.Passed() {
			t.Errorf("%s: %d repairs, %v, violations %v, %v", s.Name, result.Repairs, result.Unmet, result.Violations, err)
		}
		delete(least, s.Name)
	}
	if len(least) > 0 {
		t.Errorf("there are no scenarios of %v", least)
	}
}
