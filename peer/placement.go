package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/machine"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
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

// moving is what the coming and going of a namespace's shards needs. Which come and go
// internal/node decides.
type moving struct {
	soon  atomic.Bool // a look is on its way
	later *time.Timer // to the next look; guarded by the node's changing
}

// begin drives a set that is open, from now on.
func (ns *Namespace) begin(set *node.Set) *shard {
	sh := ns.openShard(set)
	all := append(slices.Clone(ns.shards()), sh)
	slices.SortFunc(all, func(a, b *shard) int { return int(a.set.Shard()) - int(b.set.Shard()) })
	ns.held.Store(&all)
	return sh
}

// moveSoon looks for shards that are to come or go, once for all that asks for it meanwhile:
// where they are to be may have changed.
func (ns *Namespace) moveSoon() {
	if ns.core.Rule() == nil || ns.moving.soon.Swap(true) {
		return
	}
	ns.node.soon(func() {
		ns.moving.soon.Store(false)
		if ns.enter("move") != nil {
			return // it is being closed
		}
		defer ns.gate.leave()
		ns.move()
	})
}

// relisted looks for shards soon where a layout may be due, or shards may be to come or go, and
// begins a round of syncs at once where a row asks for them. The namespace's locks are held.
func (n *Node) relisted(core *node.Namespace) {
	n.soon(func() {
		if ns := n.namespaceByID(core.ID()); ns != nil {
			if core.Seeks() {
				machine.Wake(n.hurried)
			}
			ns.moveSoon()
		}
	})
}

// arrange states the layout if that is due, says which shards this node holds, and looks again
// when a layout will be due. The node's changing is held.
func (ns *Namespace) arrange() {
	wait, stated, err := ns.core.Arrange(ns.ctx)
	if err != nil {
		ns.unmoved("the layout of the shards, or which of them this node holds, could not be stated, and is tried again", err)
	}
	if stated {
		machine.Wake(ns.node.hurried)
	}
	if ns.moving.later != nil {
		ns.moving.later.Stop()
	}
	if wait > 0 {
		ns.moving.later = time.AfterFunc(wait, ns.moveSoon)
	}
}

// move opens the shards that this node is to hold, and drops those that it may leave. An
// open namespace is inside its gate.
func (ns *Namespace) move() {
	if ns.core.Rule() == nil {
		return
	}
	n := ns.node
	n.changing.Lock() // the store is not backed up meanwhile, and the namespace not dropped
	defer n.changing.Unlock()
	if ns.ctx.Err() != nil {
		return
	}
	defer ns.arrange()
	take, leave := ns.core.Moves()
	for _, number := range take {
		set, err := ns.core.TakeShard(ns.ctx, number)
		if err != nil {
			ns.unmoved("a shard that this node is to take could not be opened, and is tried again", err)
			continue
		}
		sh := ns.begin(set)
		sh.push(n.mesh())
		n.log.Info("this node holds a further shard", logNamespace(ns), logShard(number))
	}
	if len(take) > 0 {
		machine.Wake(n.hurried)
	}
	for _, set := range leave {
		if err := ns.core.Leave(set); errors.Is(err, reconcile.ErrBusy) {
			continue // a record has come meanwhile; it is handed over first
		} else if err != nil {
			ns.unmoved("a shard that this node need not hold could not be left, and is tried again", err)
			continue
		}
		ns.forget(set)
	}
	for _, set := range ns.core.Discards() {
		if err := n.met(ns.core.Discard(context.WithoutCancel(ns.ctx), set)); err != nil {
			ns.unmoved("the records of a shard that was left could not be deleted, and it is tried again", err)
			continue
		}
		n.log.Info("this node has handed a shard over, and holds it no longer", logNamespace(ns), logShard(set.Shard()), slog.Int("kept", set.Kept()))
	}
}

func logShard(number placement.Shard) slog.Attr { return slog.Int("shard", int(number)) }

// unmoved tells of a shard that could not come or go.
func (ns *Namespace) unmoved(what string, err error) {
	if ns.ctx.Err() == nil {
		ns.node.log.Warn(what, logNamespace(ns), logError(err))
	}
}

// forget ends what drives a set that was left, and what is known of it.
func (ns *Namespace) forget(set *node.Set) {
	all := slices.Clone(ns.shards())
	at := slices.IndexFunc(all, func(sh *shard) bool { return sh.set == set })
	sh := all[at]
	all = slices.Delete(all, at, at+1)
	ns.held.Store(&all)
	sh.end()
	if err := sh.verified.Remove(); err != nil {
		ns.unmoved("when a shard that was left was last proved equal is still noted", err)
	}
}

// Level is how many hosts of a key's shard must hold a write durably, or answer a read: Quorum, All
// or a number. The zero value is Quorum.
type Level int

// The levels. Quorum: a read finds what a write at level quorum has acknowledged before the read began, or
// something later. One of three hosts may fail. One: the nearest host answers; what it gives may be behind. All:
// each host that is neither removed nor lapsed.
const (
	Quorum = Level(quorum.Quorum)
	One    = Level(quorum.One)
	All    = Level(quorum.All)
)

// String is the text that UnmarshalText reads.
func (l Level) String() string { return quorum.Level(l).String() }

// UnmarshalText reads a level: "one", "quorum", "all" or a number; the empty text is Quorum.
func (l *Level) UnmarshalText(b []byte) error {
	read, err := quorum.ParseLevel(string(b))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	*l = Level(read)
	return nil
}

// Locate looks a key up in a namespace that is cut into shards, and tells what was asked. The
// result is meaningful with the error, which is ErrTooFew where too few hosts have answered.
func (ns *Namespace) Locate(ctx context.Context, key []byte, options ...GetOption) (l status.Located, err error) {
	err = ns.within(ctx, fmt.Sprintf("locate %q in", clip(key)), func(ctx context.Context) error {
		o, err := readOptions(options)
		switch {
		case err != nil:
			return err
		case ns.hosts == nil:
			return node.ErrOneShard
		}
		if err := (&dbadapter.Record{Key: key}).Validate(); err != nil {
			return err
		}
		found, err := ns.lookUp(ctx, key, o.GetOptions)
		l = ns.hosts.Located(key, &found)
		return ns.orRemoved(err)
	})
	return l, err
}
