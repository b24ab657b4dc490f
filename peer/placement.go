package peer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
)

// Placement says how a namespace is cut into shards. It is fixed when the namespace is
// made, whose id is made of it.
type Placement struct {
	// Kind says what decides which shard a key belongs to. "hash" is a hash of it. "prefix" is a table of
	// prefixes, and the hash of a key that has none of them. "writer" is the hash, while a large value stays
	// in a shard of its writer.
	Kind string
	// Shards is their number: a power of two from 2 to 4,096.
	Shards int
	// Replicas is how many hosts each shard is to have, 1 to 16.
	Replicas int
	// Prefixes is the table of the kind "prefix".
	Prefixes []PrefixShard
	// Locator has each member keep a compressed copy of which keys there are, some 4 bytes a key in memory
	// and as many on disk. A Get at level One of a key that there is not then takes no request. It may miss
	// what another node has written less than 5 s ago. The kind "writer" always has one.
	Locator bool
	// Inline, of the kind "writer", is the longest value in bytes that is in its record; nil: 1,024.
	Inline *int
}

// PrefixShard is a line of the table: keys that begin so belong to the shard.
type PrefixShard struct {
	Prefix []byte
	Shard  int
}

// Layout says which members hold each shard, for now.
type Layout struct {
	Epoch uint64 // counts the layouts of the namespace, from 1
	By    ID     // the admin whose node stated it
	At    time.Time
	Hosts [][]ID // of each shard; of one that moves, the old hosts
	Moves []Move
}

// Move is a shard whose old hosts and new ones differ: requests need a majority of each.
type Move struct {
	Shard    int
	Old, New []ID
	// Unready are the new hosts that have not said yet, as far as this node has heard, that they
	// have what they must have. The move ends once none is left, and an admin's node is awake.
	Unready []ID
}

// Shards is how the shards of a namespace stand.
type Shards struct {
	// Epoch is that of the layout that counts here; 0: none is known.
	Epoch uint64
	// Held are the shards that this node holds, and Whole those among them of which it has
	// all that it must have.
	Held, Whole int
	// Fetching are those that this node is a host of, and does not hold, or is not whole of yet;
	// Dropping those that it holds until a majority of their new hosts has them.
	Fetching, Dropping int
	// Moving are the shards of the namespace whose old hosts and new ones differ.
	Moving int
	// Short are the shards that fewer of their hosts say to hold than the placement has
	// replicas. It counts what this node has heard. A host says so once it has begun to
	// fetch.
	Short int
}

func peerIDs(ids []node.ID) (out []ID) {
	for _, id := range ids {
		out = append(out, ID(id))
	}
	return out
}

// rule is the placement as the node keeps it.
func (p *Placement) rule() (*placement.Rule, error) {
	if p == nil {
		return nil, nil
	}
	kind, err := placement.ParseKind(p.Kind)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	r := &placement.Rule{Kind: kind, Shards: p.Shards, Replicas: p.Replicas, Locator: p.Locator || kind == placement.Writer}
	switch {
	case p.Inline != nil:
		r.Inline = *p.Inline
	case kind == placement.Writer:
		r.Inline = placement.DefaultInline
	}
	for _, one := range p.Prefixes {
		if one.Shard < 0 || one.Shard >= p.Shards {
			return nil, fmt.Errorf("%w: prefix %q goes to shard %d of %d", ErrInvalid, one.Prefix, one.Shard, p.Shards)
		}
		r.Prefixes = append(r.Prefixes, placement.PrefixShard{Prefix: slices.Clone(one.Prefix), Shard: placement.Shard(one.Shard)})
	}
	return r, nil
}

func policyOf(core *node.Namespace) Policy {
	agreed := core.Members().Policy()
	p := Policy{Unsigned: agreed.Unsigned, MaxSkew: agreed.MaxSkew}
	if rule := core.Rule(); rule != nil {
		p.Placement = &Placement{Kind: rule.Kind.String(), Shards: rule.Shards, Replicas: rule.Replicas, Locator: rule.Locator}
		if rule.Kind == placement.Writer {
			p.Placement.Inline = &rule.Inline
		}
		for _, one := range rule.Prefixes {
			p.Placement.Prefixes = append(p.Placement.Prefixes, PrefixShard{one.Prefix, int(one.Shard)})
		}
	}
	return p
}

// Layout is the layout that counts here. ErrInvalid: the namespace is one shard.
// ErrNotFound: no layout is stated yet, or its table has not come.
func (ns *Namespace) Layout() (Layout, error) {
	l, stated, err := ns.core.Layout()
	if err != nil {
		return Layout{}, fmt.Errorf("layout of namespace %s: %w", ns.core.Members().Name(), err)
	}
	out := Layout{Epoch: stated.Epoch, By: ID(stated.By), At: stated.At.Time()}
	for s := range placement.Shard(l.Shards()) {
		row := l.Row(s)
		out.Hosts = append(out.Hosts, peerIDs(row.Old))
		if !row.AtRest() {
			out.Moves = append(out.Moves, Move{int(s), peerIDs(row.Old), peerIDs(row.New), peerIDs(ns.core.Unready(row))})
		}
	}
	return out, nil
}

// Left is what is left of a shard that has lost a majority of its old hosts.
type Left struct {
	Shard int
	// Hosts are named as the shard's old hosts from now on, of so many before. Whole: they have all
	// that they must have.
	Hosts []ID
	Of    int
	Whole bool
}

// ForceLayout states a layout that names what is left of each shard of which a majority of the old
// hosts is gone for good. What only others held is lost. Lapse or remove the members that are gone
// first, and call it only if they cannot return. It changes nothing where all shards have their
// majorities. ErrDenied: this node is no admin. ErrTooFew: no host of a shard answers.
func (ns *Namespace) ForceLayout(ctx context.Context) ([]Left, error) {
	if err := ns.enter("force the layout"); err != nil {
		return nil, err
	}
	defer ns.gate.leave()
	if ns.core.Rule() == nil {
		return nil, fmt.Errorf("force the layout of %s: %w", ns.Name(), node.ErrOneShard)
	}
	ctx, cancel := ns.bind(ctx)
	defer cancel()
	left, err := ns.hosts.Force(ctx)
	if err != nil {
		return nil, fmt.Errorf("force the layout of %s: %w", ns.Name(), err)
	}
	out := []Left{}
	for _, l := range left {
		one := Left{Shard: int(l.Shard), Of: l.Of, Whole: l.Whole}
		for _, id := range l.Hosts {
			one.Hosts = append(one.Hosts, ID(id))
		}
		out = append(out, one)
	}
	wake(ns.node.hurried)
	return out, nil
}
