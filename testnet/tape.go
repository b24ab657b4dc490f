package testnet

import (
	"slices"

	"github.com/syncd-io/syncd/testnet/internal/plan"
)

// ErrScenario: a text is no scenario. The message names the line and says what
// should stand there.
var ErrScenario = plan.ErrText

// Tape is the run as a scenario with all of its events, those drawn from the seed
// included. It has the same trace, also if a later version draws other events.
func (r *Result) Tape() string { return r.plan.String() }

// flipped are the nodes that the plan, not the code under test, has damaged.
func (r *Result) flipped() []int {
	return slices.DeleteFunc(slices.Clone(r.Damaged), func(n int) bool {
		return slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Rule == ruleDamage && v.Node == n })
	})
}
