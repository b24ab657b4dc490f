package model

import (
	"bytes"
	"context"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/shards"
)

// collectEvery is about how often a process looks for bodies that nothing names.
const collectEvery = time.Minute

// hinted notes in which shard any node has taken a hint of a key last: a locator of all nodes, which hears of values
// at once, and of nothing else that becomes of their keys.
func (c *Cluster) hinted(r *dbadapter.Record) {
	if _, _, body := bodies.Names(r.Key); c.Rule == nil || c.Rule.Kind != placement.Writer || !bodies.Reserved(r.Key) || body {
		return
	}
	shard, _ := bodies.Shard(r.Key)
	if of := string(bytes.TrimPrefix(r.Key, bodies.HintPrefix(shard))); !r.Deleted {
		c.values[of] = shard
	} else if c.values[of] == shard {
		delete(c.values, of)
	}
}

// collectBodies does so from now on.
func (p *process) collectBodies() {
	p.after(collectEvery/2+time.Duration(p.draw(node.ForRest)%uint64(collectEvery)), func() {
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
	n.runRequest(func(ctx context.Context, s *shards.Shards) {
		_, err := s.Reindex(ctx)
		if ctx.Err() == nil {
			n.process.refused(err)
		}
	}, func(error) {})
}
