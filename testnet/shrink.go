package testnet

import (
	"context"
	"errors"
	"slices"

	"github.com/syncd-io/syncd/testnet/internal/plan"
)

// ErrNothingBroken: a run cannot be made smaller, because nothing went wrong in
// it; or because what is wrong is that something did not happen, which taking
// events away will not bring about.
var ErrNothingBroken = errors.New("nothing is broken in it that a smaller run could break")

// shrinkRuns bounds the runs of a search. The context ends it long before.
const shrinkRuns = 100_000

// Shrink looks for a smaller run that breaks a promise which this one broke:
// with fewer nodes, fewer faults, fewer operations, fewer bytes. It returns the
// smallest that it has found when the context ends or nothing more can go,
// which may be this one; its Tape replays it.
func (r *Result) Shrink(ctx context.Context) (Result, error) {
	broken := r.broken()
	if len(broken) == 0 {
		return Result{}, ErrNothingBroken
	}
	small := plan.Shrink(ctx, *r.plan, func(p plan.Plan) bool {
		res, err := run(ctx, &p, nil)
		return err == nil && res.breaksOne(broken)
	}, shrinkRuns)
	// What else was expected went with the events that brought it about.
	small.Expect.Refused = nil
	res, err := run(context.WithoutCancel(ctx), &small, nil)
	flipped := res.flipped()
	small.Expect.Corrupt = slices.DeleteFunc(slices.Clone(small.Expect.Corrupt), func(n int) bool { return !slices.Contains(flipped, n) })
	res.Unmet = small.Expect.Unmet(res.outcome)
	return res, err
}

// broken are the rules that a run broke and should not have; "converged" if no
// rule says why it did not; and "damaged".
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
