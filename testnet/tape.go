package testnet

import (
	"slices"

	"github.com/syncd-io/syncd/testnet/internal/plan"
)

// ErrScenario: a text is no scenario. The message names the line and says what
// should stand there.
var ErrScenario = plan.ErrText

// Tape is the run as a scenario: each of its events, those drawn from the seed
// too. It runs to the same trace, also where a later version draws others.
func (r *Result) Tape() string { return r.plan.String() }

// flipped are the nodes whose damage the plan did, and not the code under test.
func (r *Result) flipped() []int {
	return slices.DeleteFunc(slices.Clone(r.Damaged), func(n int) bool {
		return slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Rule == ruleDamage && v.Node == n })
	})
}
