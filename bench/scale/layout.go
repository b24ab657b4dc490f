package main

import (
	"encoding/binary"
	"slices"

	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
)

// plan is what was found of layouts.
type plan struct {
	table    int           // bytes of a layout
	rows     [][]roster.ID // the hosts of each shard
	hosts    int           // nodes that have a shard
	most     int           // shards of the fullest
	lost     int           // shards of the host that is lost, and places that its loss moves
	moved    int
	most2    int // shards that one node takes over, at the most
	sources  int // shards that one node gives, at the most
	degraded int // shards that have fewer hosts until then
}

// layouts plans the layout of all nodes, and that without the one that has the most shards.
func (o *options) layouts() (p plan, err error) {
	rule := &placement.Rule{Kind: placement.Hash, Shards: o.shards, Replicas: o.replicas}
	var hosts []placement.Host
	for i := range o.nodes {
		key := make([]byte, 32)
		binary.BigEndian.PutUint32(key, uint32(i+1))
		hosts = append(hosts, placement.Host{ID: roster.IDOf(key), Weight: 1})
	}
	before, err := placement.Plan(rule, hosts)
	if err != nil {
		return p, err
	}
	p.table = len(before.Value())
	has := map[roster.ID]int{}
	var fullest roster.ID
	for s := range o.shards {
		p.rows = append(p.rows, before.Hosts(placement.Shard(s)))
		for _, id := range before.Hosts(placement.Shard(s)) {
			if has[id]++; has[id] > has[fullest] {
				fullest = id
			}
		}
	}
	p.hosts, p.most, p.lost = len(has), has[fullest], has[fullest]
	after, err := placement.Plan(rule, slices.DeleteFunc(hosts, func(h placement.Host) bool { return h.ID == fullest }))
	if err != nil {
		return p, err
	}
	takes, gives := map[roster.ID]int{}, map[roster.ID]int{}
	for s := range o.shards {
		shard := placement.Shard(s)
		if before.Has(shard, fullest) {
			p.degraded++
		}
		for _, id := range after.Hosts(shard) {
			if before.Has(shard, id) {
				continue
			}
			p.moved++
			takes[id]++
			p.most2 = max(p.most2, takes[id])
			for _, from := range before.Hosts(shard) {
				if from != fullest { // the first of the others gives it
					gives[from]++
					p.sources = max(p.sources, gives[from])
					break
				}
			}
		}
	}
	return p, nil
}
