package peer

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/syncd-io/syncd/internal/machine"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/peer/status"
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
	// Prefixes is the table of the kind "prefix": keys that begin so belong to the shard.
	Prefixes map[string]int
	// Locator has each member keep a compressed copy of which keys there are, some 4 bytes a key in memory
	// and as many on disk. A Get at level One of a key that there is not then takes no request. It may miss
	// what another node has written less than 5 s ago. The kind "writer" always has one.
	Locator bool
	// Inline, of the kind "writer", is the longest value in bytes that is in its record; nil: 1,024.
	Inline *int
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
	for _, prefix := range slices.Sorted(maps.Keys(p.Prefixes)) {
		shard := p.Prefixes[prefix]
		if shard < 0 || shard >= p.Shards {
			return nil, fmt.Errorf("%w: prefix %q goes to shard %d of %d", ErrInvalid, prefix, shard, p.Shards)
		}
		r.Prefixes = append(r.Prefixes, placement.PrefixShard{Prefix: []byte(prefix), Shard: placement.Shard(shard)})
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
		if len(rule.Prefixes) > 0 {
			p.Placement.Prefixes = map[string]int{}
		}
		for _, one := range rule.Prefixes {
			p.Placement.Prefixes[string(one.Prefix)] = int(one.Shard)
		}
	}
	return p
}

// Layout is the layout that counts here. ErrInvalid: the namespace is one shard.
// ErrNotFound: no layout is stated yet, or its table has not come.
func (ns *Namespace) Layout() (status.Layout, error) {
	l, err := shards.Layout(ns.core)
	if err != nil {
		return l, fmt.Errorf("layout of namespace %s: %w", ns.core.Members().Name(), err)
	}
	return l, nil
}

// ForceLayout states a layout that names what is left of each shard of which a majority of the old
// hosts is gone for good. What only others held is lost. Lapse or remove the members that are gone
// first, and call it only if they cannot return. It changes nothing where all shards have their
// majorities. ErrDenied: this node is no admin. ErrTooFew: no host of a shard answers.
func (ns *Namespace) ForceLayout(ctx context.Context) (left []status.Left, err error) {
	err = ns.within(ctx, "force the layout of", func(ctx context.Context) (err error) {
		if ns.core.Rule() == nil {
			return node.ErrOneShard
		}
		if left, err = ns.hosts.Force(ctx); err == nil {
			machine.Wake(ns.node.hurried)
		}
		return err
	})
	return left, err
}
