package peer

import (
	"context"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/ask"
	"github.com/syncd-io/syncd/internal/damage"
	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// statusAge is for how long one reading of what the files take on the disk is reported. A look reads
// the whole folder, and peers may ask often.
const statusAge = 10 * time.Second

// Cluster asks the other members how they are, and returns all members by their ids. It asks many at once, those
// first to which there is a connection. A member that has not answered when the context is over is listed with a
// Problem. Give the context a time-out of some seconds.
func (ns *Namespace) Cluster(ctx context.Context) (out []status.ClusterMember, err error) {
	err = ns.within(ctx, "ask the members of", func(ctx context.Context) error {
		for _, m := range ns.Members() {
			one := status.ClusterMember{ID: m.ID, Role: m.Role.String(), Lapsed: m.Lapsed}
			if m.ID == ns.node.self.id {
				one.Self, one.SameList, one.Equal = true, true, true
			} else if p := ns.proof(m.ID); !p.At.IsZero() {
				one.Verified = &p
			}
			out = append(out, one)
		}
		if ns.core.Rule() != nil {
			ns.hosts.Cluster(ctx, ns.inquiry(), out)
		} else {
			ns.inquiry().Cluster(ctx, ns.core.Sets()[0], out)
		}
		return nil
	})
	return out, err
}

// inquiry is how members are asked, as package ask sees it.
func (ns *Namespace) inquiry() *ask.Inquiry {
	return &ask.Inquiry{
		Near: func(id node.ID) bool { return ns.node.host.Connected(ID(id)) },
		Ask: func(ctx context.Context, about ask.About, id node.ID, q wire.Question) (ask.Answered, error) {
			a, err := ns.node.ask(ctx, about, ID(id), 0, q)
			if err != nil {
				err = ns.explain(ctx, err)
			}
			return a, err
		},
		Kinds: damage.Kinds,
	}
}

// Majorities says of which shards no majority of the hosts is among the members that have answered.
// It also says which members cannot be removed, or lapse, without leaving shards no majority.
func (ns *Namespace) Majorities(all []status.ClusterMember) (without []int, needed []ID) {
	answered := map[node.ID]bool{}
	for i := range all {
		m := &all[i]
		answered[node.ID(m.ID)] = m.Problem == nil
		if !m.Lapsed && ns.core.Leaves(node.ID(m.ID)) != nil {
			needed = append(needed, m.ID)
		}
	}
	for _, s := range ns.core.Without(func(id node.ID) bool { return answered[id] }) {
		without = append(without, int(s))
	}
	return without, needed
}

// describe completes what this node tells a member that asks how it is.
func (n *Node) describe(id dbadapter.NamespaceID, a *wire.StatusAnswer) {
	a.Program = n.program
	a.Disk = n.disk.lately(n)
	ns := n.namespaceByID(id)
	if ns == nil {
		return // it is being opened, or dropped
	}
	a.Damaged, a.Unable = n.damage.Of(id) != nil || n.Damage() != nil, n.health.Unable()
	if p := ns.lastProof(); !p.At.IsZero() {
		a.Proved = &wire.Proved{With: []byte(p.With), At: uint64(max(0, p.At.UnixMilli())), Differences: uint64(p.Differences)}
	}
}

// clipProgram is as much of a version as travels.
func clipProgram(s string) string {
	s = strings.ToValidUTF8(s, "?")
	for len(s) > wire.MaxProgram {
		_, last := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-last]
	}
	return s
}

// disk is what was seen last of the disk of the store.
type disk struct {
	mu   sync.Mutex // guards what follows
	at   time.Time  // by the monotonic clock
	seen *wire.Disk // nil: not known
}

func (d *disk) lately(n *Node) *wire.Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at.IsZero() || time.Since(d.at) >= statusAge {
		d.at, d.seen = time.Now(), nil
		if taken, free, err := durable.Usage(n.dir); err == nil {
			d.seen = &wire.Disk{Taken: uint64(taken), Free: uint64(free)}
		}
	}
	return d.seen
}

// Unproved says which namespaces no sync has proved equal to another member within a time. It
// leaves out a namespace that has no other member, or no shard that this node holds or is to
// hold. nil: there are none. It is what a load balancer may ask of a node.
func (n *Node) Unproved(within time.Duration) (names []string) {
	for _, ns := range n.Namespaces() {
		if r, err := ns.core.Replicas(); err == nil && r.Epoch != 0 && r.Held == 0 && r.Fetching == 0 {
			continue // it holds no shard, and so no record; its hosts answer
		}
		last := ns.lastProof()
		if _, others := ns.verifiedAge(); others && (last.At.IsZero() || n.now().Sub(last.At) > within) {
			names = append(names, ns.Name())
		}
	}
	return names
}
