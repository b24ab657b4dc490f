package model

import (
	"context"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/shards"
)

// scanPage is the size of a page of a scan, in bytes: small, so that a scan has several of a shard.
const scanPage = 4 << 10

// Scan reads all records, tombstones too: those of a shard here, if this node is whole, and else at a whole
// host. A node that dies meanwhile tells nothing.
func (n *Node) Scan(told func(records []dbadapter.Record, err error)) {
	n.runRequest(func(ctx context.Context, s *shards.Shards) {
		var all []dbadapter.Record
		var err error
		for number := range placement.Shard(n.cluster.Rule.Shards) {
			if all, err = n.process.scan(ctx, s, number, all); err != nil {
				break
			}
		}
		if ctx.Err() == nil {
			slices.SortStableFunc(all, func(a, b dbadapter.Record) int { return slices.Compare(a.Key, b.Key) })
			told(all, err)
		}
	}, func(err error) { told(nil, err) })
}

// scan appends the records of a shard.
func (p *process) scan(ctx context.Context, s *shards.Shards, number placement.Shard, all []dbadapter.Record) ([]dbadapter.Record, error) {
	if set := p.ns.WholeHere(number); set != nil {
		if sh := p.of(set); sh != nil {
			return append(all, sh.records()...), nil
		}
	}
	for after := []byte(nil); ; {
		page, err := s.Page(ctx, number, nil, after, scanPage)
		if err != nil {
			return all, err
		}
		all = append(all, page.Records...)
		if !page.More || len(page.Records) == 0 {
			return all, nil
		}
		after = page.Records[len(page.Records)-1].Key
	}
}
