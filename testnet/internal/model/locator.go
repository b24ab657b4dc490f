package model

import (
	"context"

	"github.com/syncd-io/syncd/internal/node"
)

// openLocator opens what the process follows.
func (p *process) openLocator() error {
	s := p.requests()
	if err := s.OpenLocator(&p.node.copies, p.draw(node.ForNonce), nil); err != nil {
		return err
	}
	p.after(0, func() { // the node may not come to start
		p.routine(func(ctx context.Context) { s.Follow(ctx, p.refused) })
	})
	return nil
}
