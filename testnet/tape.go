package testnet

import "github.com/syncd-io/syncd/testnet/internal/plan"

// ErrScenario: a text is no scenario. The message names the line and says what
// should stand there.
var ErrScenario = plan.ErrText

// Tape is the run as a scenario: each of its events, those drawn from the seed
// too. It runs to the same trace, also where a later version draws others.
func (r *Result) Tape() string { return r.plan.String() }
