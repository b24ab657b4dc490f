package model

import (
	"context"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/internal/locator"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/shards"
)

// copies are the files of a node's locator. A process that was killed left them as they were written last.
type copies map[string][]byte

// Read implements locator.Disk.
func (c copies) Read(name string) ([]byte, error) { return c[name], nil }

// Write implements locator.Disk.
func (c copies) Write(name string, data []byte) error {
	c[name] = slices.Clone(data)
	return nil
}

// openLocator opens what the process follows.
func (p *process) openLocator() error {
	n := p.node
	if n.copies == nil {
		n.copies = copies{}
	}
	index, err := locator.Open(locator.Config{Shards: p.ns.Rule().Shards, Seed: p.draw(node.ForNonce), Disk: n.copies})
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
