package testnet

import (
	"testing"

	"github.com/syncd-io/syncd/testnet/scenarios"
)

// Three nodes are full of different keys of one index: 103 that are not deleted. Each holds
// 64 of them, and lists the others.
func TestFullIndexIsDeclined(t *testing.T) {
	for _, s := range scenarios.All() {
		if s.Name != "full-index" {
			continue
		}
		result, err := Run(t.Context(), Config{Scenario: s.Text})
		if err != nil || !result.Passed() || !result.Converged {
			t.Fatalf("%v, violations %v, %v", result.Unmet, result.Violations, err)
		}
		if want := 3 * (103 - 64); result.Full != want || result.Refused["limit"] == 0 {
			t.Errorf("nodes lacked %d records for want of room, not %d; refused %v", result.Full, want, result.Refused)
		}
		return
	}
	t.Error("there is no scenario of a full index")
}
