package peer

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/syncd-io/syncd/dbadapter"
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
func (ns *Namespace) Cluster(ctx context.Context) ([]status.ClusterMember, error) {
	if err := ns.enter("ask how the members are"); err != nil {
		return nil, err
	}
	defer ns.gate.leave()
	ctx, cancel := ns.bind(ctx)
	defer cancel()
	members := ns.Members()
	out := make([]status.ClusterMember, len(members))
	var others []int
	for i, m := range members {
		out[i] = status.ClusterMember{ID: m.ID, Role: m.Role.String(), Lapsed: m.Lapsed}
		if m.ID == ns.node.self.id {
			out[i].Self, out[i].SameList, out[i].Equal = true, true, true
			continue
		}
		if p := ns.proof(m.ID); !p.At.IsZero() {
			out[i].Verified = &p
		}
		others = append(others, i)
	}
	if ns.core.Rule() != nil {
		ns.inquireShards(ctx, out)
		return out, nil
	}
	sh := ns.shards()[0]
	for i := range out {
		if out[i].Self {
			tell(&out[i], sh.set.Status())
		}
	}
	some(asked, others, func(i int) bool { return ns.node.host.Connected(members[i].ID) }, func(i int) { sh.inquire(ctx, &out[i]) })
	return out, nil
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

// inquire asks a member how it is.
func (sh *shard) inquire(ctx context.Context, m *status.ClusterMember) {
	before, begun := sh.set.Status(), time.Now()
	a, err := sh.ask(ctx, m.ID, 0, &wire.AskStatus{})
	if err != nil {
		m.Problem = fmt.Errorf("ask %s how it is: %w", m.ID, sh.ns.explain(ctx, err))
		return
	}
	theirs, ok := a.Answer.(*wire.StatusAnswer)
	if !ok {
		m.Problem = fmt.Errorf("ask %s how it is: %w: it answers something else", m.ID, ErrUnreachable)
		return
	}
	now := sh.set.Status()
	tell(m, theirs)
	met(m, sh.ns.core.Members().Digest(), begun, &a)
	// What was written here meanwhile may be there already, or not yet.
	m.Equal = theirs.Sum == before.Sum || theirs.Sum == now.Sum
	if !m.Equal {
		m.Missing = int64(now.Sum.Records) - m.Records
	}
	if !m.Equal && !m.Newest.IsZero() {
		m.Behind = max(0, now.Newest.Time().Sub(m.Newest))
	}
}

// met takes what a member's greeting says; lists is what it says where it has this node's list.
func met(m *status.ClusterMember, lists [16]byte, begun time.Time, a *answered) {
	m.Took = time.Since(begun)
	m.SameList = a.Greeting.List == lists
	// It read its clock between the two readings of this node's.
	half := a.came.Sub(a.left).Abs() / 2
	m.Offset, m.OffsetError = a.left.Add(half).Sub(unixMilli(a.Greeting.Time)), half+time.Millisecond
}

// tell takes what a member says of what it holds, and of itself. That may be anything: numbers
// are bounded.
func tell(m *status.ClusterMember, a *wire.StatusAnswer) {
	m.Records, m.Digest, m.Newest = bounded(a.Sum.Records), a.Sum.Digest, newestOf(a)
	describe(m, a)
}

// newestOf is the time of the newest version that a member tells of; zero before the first.
func newestOf(a *wire.StatusAnswer) (at time.Time) {
	if a.Newest != 0 {
		at = unixMilli(uint64(max(0, a.Newest.Time().UnixMilli())))
	}
	return at
}

// describe takes what it says of itself.
func describe(m *status.ClusterMember, a *wire.StatusAnswer) {
	m.Damaged, m.Program, m.Troubles = a.Damaged, a.Program, damage.Kinds(a.Unable)
	if a.Disk != nil {
		m.Taken, m.Free = bounded(a.Disk.Taken), bounded(a.Disk.Free)
	}
	if a.Proved != nil {
		m.Proof = &status.Proof{With: ID(a.Proved.With), At: unixMilli(a.Proved.At), Differences: bounded(a.Proved.Differences)}
	}
}

// bounded is a number of a peer's as one that can be added up.
func bounded(n uint64) int64 { return int64(min(n, 1<<62)) }

// unixMilli is the time of a peer's word; one after the year 9999, which JSON cannot
// write, is that year's.
func unixMilli(ms uint64) time.Time {
	const most = 253_402_300_799_000
	return time.UnixMilli(int64(min(ms, most))).UTC()
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
