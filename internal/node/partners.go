package node

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/syncing"
)

// Partners are the peers that known reports a way to reach, with the parts that they share
// with this node. Of a namespace of whose shards the two share none, that is the control
// namespace. They are in the order of their ids, so a round is a function of its input.
func (n *Node) Partners(known func(ID) bool) (turns []syncing.Turn[*Part]) {
	shared := map[ID][]*Part{}
	for _, ns := range n.namespaces() { // known may ask the node, whose lock a set that comes may wait for
		for _, m := range ns.Members().Members() {
			if m.ID != n.ID && ns.PausedWith(m.ID) == nil {
				shared[m.ID] = append(shared[m.ID], ns.sharedWith(m.ID)...)
			}
		}
	}
	for id, parts := range shared {
		if !known(id) {
			continue
		}
		slices.SortFunc(parts, func(a, b *Part) int {
			switch {
			case a.isControl() == b.isControl():
				return slices.Compare(a.Keys.ID[:], b.Keys.ID[:])
			case a.isControl():
				return 1 // what is about records goes first
			}
			return -1
		})
		turns = append(turns, syncing.Turn[*Part]{Remote: id, Parts: parts})
	}
	slices.SortFunc(turns, func(a, b syncing.Turn[*Part]) int { return cmp.Compare(a.Remote, b.Remote) })
	return turns
}

// sharedWith are the parts that are synced with a member.
func (ns *Namespace) sharedWith(remote ID) (parts []*Part) {
	for _, set := range ns.Sets() {
		if set.saidBy(remote) {
			parts = append(parts, &set.Part)
		}
	}
	if len(parts) == 0 {
		parts = append(parts, &ns.Control)
	}
	return parts
}

// Seeking reports whether a set of any namespace has still to be found equal under its row.
func (n *Node) Seeking() bool { return slices.ContainsFunc(n.namespaces(), (*Namespace).Seeks) }

// ID names the part among all that the node syncs.
func (p *Part) ID() dbadapter.NamespaceID { return p.Keys.ID }

// Seeks reports whether the part has still to be found equal under its row.
func (p *Part) Seeks() bool { return p.set != nil && p.set.tenure.seeks() }

// Rests reports whether the part need not be synced with a peer yet. A short while ago the
// peer was proved to hold what this node holds. Besides, nothing waits for what members
// have seen, and no row asks for another sync.
func (p *Part) Rests(remote ID) bool {
	n, set := p.ns.node, p.set
	if set == nil || !n.Push.On || set.tenure.seeks() {
		return false
	}
	if digest, _, _ := p.Live.State(); !p.equal.Lately(remote, digest, n.elapsed(), n.Interval) || p.ns.unlike(remote) {
		return false
	}
	waiting, _ := set.gc.Waiting().Now()
	return waiting.Count == 0 && !set.gc.Recovering()
}

// unlike reports whether the control namespace has changed since a peer was last found to have
// it as well.
func (ns *Namespace) unlike(remote ID) bool {
	digest, _, _ := ns.Control.Live.State()
	return !ns.Control.equal.Has(remote, digest)
}

// of is the part that an initiator asks for.
func (p *Part) of(a syncing.Ask) *Part {
	if a.Control {
		return &p.ns.Control
	}
	return p
}

// Plan is that of a sync of the part with a peer. One of a control namespace is about that alone.
func (p *Part) Plan(remote ID, a syncing.Ask) *syncing.Plan {
	a.Control = a.Control || p.isControl()
	p = p.of(a)
	return syncing.NewPlan(a, syncing.PlanConfig{
		PartSize: p.ns.node.bulk().PartSize,
		News:     p.ns.unlike(remote),
		Removed:  func(statements [][]byte) error { return p.ns.Heed(remote, statements) },
		Denied:   func(err error) error { return p.denied(remote, err) },
	})
}

// ErrNotHeld: a member does not hold a shard. While shards move that is no failure. It is ErrDenied, too.
var ErrNotHeld = errors.New("that node does not hold shard")

// denied says what the peer's denial means, and what to do about it. What this
// node itself denies says so where it is denied.
func (p *Part) denied(remote ID, err error) error {
	if gone := p.ns.Outside(); gone != nil {
		return gone
	}
	if p.set != nil && p.ns.rule != nil && p.ns.Admits(remote) {
		return fmt.Errorf("%w %d: %w; it has yet to fetch it, or has handed it over, or goes by another list of members", ErrNotHeld, p.set.shard, err)
	}
	return fmt.Errorf("%w: that node does not list this one as a member, or does not hold the namespace; ask for an invitation", err)
}
