package testnet

import (
	"context"
	"errors"
	"slices"

	"github.com/syncd-io/syncd/testnet/internal/plan"
)

// ErrNothingBroken: Shrink cannot make a run smaller, because it broke no promise;
// or because an expected event is missing, which fewer events cannot bring about.
var ErrNothingBroken = errors.New("nothing is broken in it that a smaller run could break")

// shrinkRuns bounds the runs of a search. The context ends it long before.
const shrinkRuns = 100_000

// Shrink searches for a smaller run that breaks a promise which this one broke:
// with fewer nodes, fewer faults, fewer operations, fewer bytes. It returns the
// smallest run found when the context ends or nothing more can go; this may be the
// run itself. Its Tape replays it.
func (r *Result) Shrink(ctx context.Context) (Result, error) {
	broken := r.broken()
	if len(broken) == 0 {
		return Result{}, ErrNothingBroken
	}
	small := plan.Shrink(ctx, *r.plan, func(p plan.Plan) bool {
		res, err := run(ctx, &p)
		return err == nil && res.breaksOne(broken)
	}, shrinkRuns)
	// The other expectations went with the events that fulfil them.
	small.Expect.Refused = nil
	res, err := run(context.WithoutCancel(ctx), &small)
	flipped := res.flipped()
	small.Expect.Corrupt = slices.DeleteFunc(slices.Clone(small.Expect.Corrupt), func(n int) bool { return !slices.Contains(flipped, n) })
	res.Unmet = small.Expect.Unmet(res.outcome)
	return res, err
}

// broken are the rules that a run broke against its expectations; "converged" if
// it did not converge and broke no rule; and "damaged".
func (r *Result) broken() map[string]bool {
	all := map[string]bool{}
	for _, v := range r.Violations {
		if string(v.Rule) != r.plan.Expect.Violation {
			all[string(v.Rule)] = true
		}
	}
	if len(all) == 0 && !r.Converged && r.plan.Expect.Violation == "" {
		all["converged"] = true
	}
	for _, n := range r.Damaged {
		if !slices.Contains(r.plan.Expect.Corrupt, n) {
			all["damaged"] = true
		}
	}
	return all
}

// breaksOne reports whether a run broke one of these rules. A search must not
// slip from one fault to another.
func (r *Result) breaksOne(rules map[string]bool) bool {
	for rule := range r.broken() {
		if rules[rule] {
			return true
		}
	}
	return false
}
