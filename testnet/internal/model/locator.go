package model

import (
	"context"
	"fmt"

	"github.com/syncd-io/syncd/internal/locator"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/shards"
)

// openLocator opens what the process follows.
func (p *process) openLocator() error {
	n := p.node
	index, err := locator.Open(locator.Config{Shards: p.ns.Rule().Shards, Seed: p.draw(node.ForNonce), Disk: &n.copies})
	if err != nil {
		return fmt.Errorf("open the locator: %w", err)
	}
	s := p.requests()
	s.Locator = shards.NewFollower(p.ns, index, nil)
	p.after(0, func() { // the node may not come to start
		p.routine(func(ctx context.Context) { s.Follow(ctx, p.refused) })
	})
	return nil
}
