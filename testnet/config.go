package testnet

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/testnet/internal/plan"
)

// Config says what to run. The zero value is the plan drawn from seed 0.
type Config struct {
	// Scenario is the text of a scenario; see the files in testnet/scenarios.
	// If it is empty, a plan is drawn from Seed and Profile.
	Scenario string
	// Nodes and Seed, if not 0, replace those of the scenario or the drawn plan.
	Nodes int
	Seed  uint64
	// Profile is the mixture of faults in a drawn plan: calm, rough, clocks,
	// disks, members, ranges, live, shards, writer or mixed. Default: mixed.
	Profile string
}

// plan is the plan of the configuration, its random lines expanded.
func (c *Config) plan() (plan.Plan, error) {
	var p plan.Plan
	if c.Scenario == "" {
		profile := cmp.Or(plan.Profile(c.Profile), plan.Mixed)
		if !slices.Contains(plan.Profiles(), profile) {
			return p, fmt.Errorf("profile %q: want one of %v", c.Profile, plan.Profiles())
		}
		if c.Nodes < 0 || c.Nodes == 1 || c.Nodes > plan.MaxNodes {
			return p, fmt.Errorf("%w: %d nodes: want a number from 1 to %d, and a drawn plan takes 2", ErrScenario, c.Nodes, plan.MaxNodes)
		}
		return plan.Generate(c.Seed, profile, c.Nodes), nil
	}
	var err error
	if p, err = plan.Parse(c.Scenario); err != nil {
		return p, err
	}
	if c.Seed != 0 {
		p.Seed = c.Seed
	}
	if c.Nodes != 0 {
		p.Nodes = c.Nodes
	}
	if err := p.Validate(); err != nil {
		return p, fmt.Errorf("with %d nodes: %w", p.Nodes, err)
	}
	return p.Expand(), nil
}
