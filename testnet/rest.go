package testnet

import (
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/testnet/internal/check"
	"github.com/syncd-io/syncd/testnet/internal/model"
)

// equal reports whether all nodes of each group have the same digest and the same list
// of members. No node may stand in the list that says it is not a member any more.
func (r *runner) equal() bool {
	if r.cut() {
		return r.shardsEqual()
	}
	reach := r.reach()
	for _, group := range reach {
		if len(reach) > 1 && r.listsLeavers(group[0]) {
			return false
		}
		sum := r.sum(group[0])
		list := r.cluster.Node(group[0]).List()
		for _, i := range group[1:] {
			if r.sum(i) != sum || r.cluster.Node(i).List() != list {
				return false
			}
		}
	}
	return true
}

// sum is the digest of what a node holds, but for what can be collected if that is
// held back for good.
func (r *runner) sum(node int) (sum dbadapter.Digest) {
	n := r.cluster.Node(node)
	if !r.stuck(node) {
		digest, _ := n.State()
		return digest
	}
	h, now := r.cluster.Keys().Hasher, r.due()
	for _, record := range n.Records() {
		if !check.Collectable(&record, now) {
			sum = sum.Add(h.Digest(&record))
		}
	}
	return sum
}

// stuck reports whether silent members hold collection back for good: no admin is left
// that could have the others wait for them no longer.
func (r *runner) stuck(number int) bool {
	n := r.cluster.Node(number)
	return n.Member() && !r.stated(number) && !slices.ContainsFunc(n.Roster().Members(), func(m model.Member) bool { return m.Role == node.RoleAdmin })
}

// listsLeavers reports whether a member lists a node that is not a member by its own
// account.
func (r *runner) listsLeavers(node int) bool {
	n := r.cluster.Node(node)
	return n.Member() && slices.ContainsFunc(r.roster(n).Seats, func(s check.Seat) bool {
		other := r.cluster.Node(s.Node)
		return other.Up() && other.Old() == n.Old() && !other.Member() && r.roster(other).Lists(node)
	})
}

// rested reports whether nothing is left to do by themselves for nodes that are
// equal: to collect, to adopt, to return.
func (r *runner) rested() bool {
	for _, group := range r.reach() {
		n := r.cluster.Node(group[0])
		if !n.Member() {
			continue
		}
		roster, stated, now := r.roster(n), r.stated(group[0]), r.due()
		if len(roster.Returning(func(node int) bool { return slices.Contains(group, node) })) > 0 {
			return false
		}
		var records []dbadapter.Record
		for _, i := range group[:r.differ(len(group))] {
			records = append(records, r.cluster.Node(i).Records()...)
		}
		for _, record := range records {
			if stated && check.Collectable(&record, now) || !roster.Allows(&record) {
				return false
			}
		}
		if stated && r.plan.Writer && len(r.named().Unnamed(records)) > 0 {
			return false
		}
	}
	return true
}

// named are the bodies that any node's records name, or entries of its kept log.
func (r *runner) named() check.Named {
	named := check.Named{}
	for _, n := range r.cluster.Nodes() {
		if named.Add(n.Records()); n.Up() {
			for _, kept := range n.Kept() {
				named.Add([]dbadapter.Record{kept.Record})
			}
		}
	}
	return named
}

// differ is how many of so many nodes that are equal hold other records: those of shards do.
func (r *runner) differ(nodes int) int {
	if r.cut() {
		return nodes
	}
	return 1
}

// due is up to when what has expired must be collected in the end.
func (r *runner) due() dbadapter.Timestamp { return dbadapter.TimestampAt(model.Epoch.Add(r.healed)) }

// stated reports whether each member that the others wait for can say what it holds:
// it runs, and reaches this node.
func (r *runner) stated(node int) bool {
	n := r.cluster.Node(node)
	return n.Member() && !slices.ContainsFunc(n.Roster().Active(), func(m model.Member) bool {
		other := r.cluster.Node(r.cluster.Number(m.ID))
		return r.silent(n, other) || other.Liar()
	})
}

// silent reports whether a node that another lists as a member will not be heard of any
// more. It stays down, it does not know of its membership, or it speaks another version
// of the protocol.
func (r *runner) silent(n, other *model.Node) bool {
	return !other.Member() || other.Old() != n.Old()
}

// admins are, of each group, the first node that is an admin by its own list.
func (r *runner) admins() (all []*model.Node) {
	for _, group := range r.reach() {
		i := slices.IndexFunc(group, func(i int) bool {
			n := r.cluster.Node(i)
			return n.Member() && slices.ContainsFunc(n.Roster().Members(), func(m model.Member) bool {
				return r.cluster.Number(m.ID) == i && m.Role == node.RoleAdmin
			})
		})
		if i >= 0 {
			all = append(all, r.cluster.Node(group[i]))
		}
	}
	return all
}

// lapseSilent does what a node's status tells a person to do about members that stay
// silent. In each group an admin has the others wait for them no longer. Until then
// nodes may differ in tombstones that some of them collected under the list before. It
// reports whether there was such a member.
func (r *runner) lapseSilent() (lapsed bool) {
	for _, n := range r.admins() {
		for _, m := range n.Roster().Active() {
			if number := r.cluster.Number(m.ID); r.silent(n, r.cluster.Node(number)) {
				n.Lapse(number)
				lapsed = true
			}
		}
	}
	return lapsed
}

// roster is the list of members that a node has, as the checker knows it.
func (r *runner) roster(n *model.Node) *check.Roster {
	list := n.Roster()
	if list == nil {
		return nil
	}
	roster := &check.Roster{Digest: list.Digest()}
	for _, m := range list.Members() {
		if m.Expires == 0 || !n.Clock().After(m.Expires.Time()) {
			roster.Seats = append(roster.Seats, check.Seat{Node: r.cluster.Number(m.ID), Role: m.Role.String(), Lapsed: m.Lapsed})
		}
	}
	slices.SortFunc(roster.Seats, func(a, b check.Seat) int { return a.Node - b.Node })
	if !list.Policy().Unsigned {
		roster.MayWrite = list.MayWrite
	}
	return roster
}
