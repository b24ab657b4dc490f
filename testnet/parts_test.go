package testnet

import (
	"testing"

	"github.com/syncd-io/syncd/testnet/scenarios"
)

// The scenario of parts has parts: its seed draws them.
func TestPartsScenarioHasParts(t *testing.T) {
	for _, s := range scenarios.All() {
		if s.Name != "parts-cut" {
			continue
		}
		result, err := Run(t.Context(), Config{Scenario: s.Text})
		if err != nil || result.Parts < 20 || !result.Converged || len(result.Violations) > 0 {
			t.Fatalf("%d parts, %+v, %v", result.Parts, result, err)
		}
		return
	}
	t.Fatal("no scenario parts-cut")
}
