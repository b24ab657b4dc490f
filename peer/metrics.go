package peer

import (
	"github.com/syncd-io/syncd/internal/damage"
	"github.com/syncd-io/syncd/internal/metrics"
	"github.com/syncd-io/syncd/peer/status"
)

// state is what the metrics show of the node.
func (n *Node) state() metrics.State {
	s := metrics.State{
		Syncs: n.Syncing(), Peers: n.Peers(), Troubles: map[status.TroubleKind]bool{},
		Damage: n.Damage(), Findings: n.damage.Counts(), Unserved: n.Unserved(),
	}
	if o, ok := n.ClockOffset(); ok {
		s.ClockOffset = &o.By
	}
	for _, kind := range damage.Kinds(damage.AllKinds) {
		s.Troubles[kind] = false
	}
	for _, t := range n.Troubles() {
		s.Troubles[t.Kind] = true
	}
	for _, ns := range n.Namespaces() {
		s.Namespaces = append(s.Namespaces, ns.state())
	}
	return s
}

// state is what the metrics show of the namespace.
func (ns *Namespace) state() metrics.Namespace {
	s := metrics.Namespace{Namespace: ns.Info(), Collection: ns.Collection()}
	for _, sh := range ns.shards() {
		s.Drifted += int64(sh.set.Live.Drifted())
		s.Queued += ns.node.queued(sh.set)
	}
	if age, ok := ns.verifiedAge(); ok {
		s.Unproved = &age
	}
	if ns.hosts != nil && ns.hosts.Locator != nil {
		stats := ns.hosts.Locator.Index.Stats()
		s.Locator = &metrics.Locator{Keys: stats.Keys, Bytes: stats.Bytes(), Stale: ns.hosts.Locator.Unheard(ns.hosts.Net.Now())}
	}
	return s
}
