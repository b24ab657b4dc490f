package model

import (
	"context"
	"time"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/shards"
)

// collectEvery is the shortest pause before a process looks for bodies that nothing names; the longest is
// 64 times as long.
const collectEvery = 2 * time.Second

// collectBodies does so from now on.
func (p *process) collectBodies() {
	p.after(collectEvery<<(p.draw(node.ForRest)%7), func() {
		if p.node.cluster.resting {
			p.collectBodies()
			return
		}
		p.routine(func(ctx context.Context) {
			_, err := p.requests().CollectBodies(ctx)
			if ctx.Err() == nil {
				p.refused(err)
				p.collectBodies()
			}
		})
	})
}

// Reindex has the node hand the records that it was told as a host of bodies to the hosts of their keys.
func (n *Node) Reindex() {
	n.runRequest(func(ctx context.Context, s *shards.Shards) func() {
		_, err := s.Reindex(ctx)
		return func() { n.process.refused(err) }
	}, func(error) {})
}
