package model

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/testnet/internal/check"
)

// stateFile is the file of the node's disk that holds the namespace's state.
const stateFile = "state"

// create makes the namespace at this node, which becomes its first admin.
func (n *Node) create() error {
	c := n.cluster
	s, err := n.process.core.FoundShards(c.keys.Secret, Name, node.Policy{Unsigned: !c.Signed, MaxSkew: c.Skew}, c.Rule)
	if err != nil {
		return err
	}
	return n.process.adopt(s)
}

// adopt opens a namespace that is new to the node.
func (p *process) adopt(s *node.State) error {
	if err := p.save(s); err != nil {
		return err
	}
	if err := p.open(s); err != nil {
		return err
	}
	return p.ns.Announce(context.Background(), [][]byte{p.node.address()})
}

// save makes the state durable.
func (p *process) save(s *node.State) error {
	b, err := s.Encode()
	if err != nil {
		return err
	}
	n := p.node
	if recovering(s) {
		n.cluster.History.Recovering(n.number, true) // also if it cannot be made durable
	}
	if err := n.disk.File(stateFile).Replace(b); err != nil {
		return err
	}
	n.cluster.History.Recovering(n.number, recovering(s))
	p.mark = s.Watermark
	return nil
}

// recovering reports whether a set may lack what the members once held.
func recovering(s *node.State) bool {
	return s.Watermark.Recovering && !s.Sharded() || slices.ContainsFunc(s.Shards, func(one node.ShardState) bool { return one.Watermark.Recovering })
}

// open opens the namespace of the process.
func (p *process) open(s *node.State) (err error) {
	n := p.node
	n.cluster.History.Recovering(n.number, recovering(s))
	p.mark = s.Watermark
	p.ns, err = p.core.Open(context.Background(), node.Opening{
		Secret: n.cluster.keys.Secret, State: s, Save: p.save, Drop: n.drop,
		Store: func(_ context.Context, id dbadapter.NamespaceID, h dbadapter.Hasher, observe func([]dbadapter.Change)) (dbadapter.Namespace, error) {
			o := logOptions{id: n.logID(0), keeps: n.cluster.LogKeeps}
			if s, ok := n.cluster.shardOf(id); ok {
				o.id = n.logID(2 + uint64(s))
				return openStore(n.disk, shardName(s), id, h, o, n.wall.now, observe)
			}
			if id == n.cluster.keys.ID && !p.cut() {
				if n.cluster.Logs {
					o.changed = func(c *check.Change) { p.changed(o.id, c) }
				}
				return openStore(n.disk, "", id, h, o, n.wall.now, observe)
			}
			control, err := openStore(n.disk, "control-", id, h, logOptions{id: n.logID(1)}, n.wall.now, observe)
			if err == nil {
				control.admitted = n.crash.count
			}
			return control, err
		},
	})
	if err != nil {
		return err
	}
	for _, set := range p.ns.Sets() {
		p.drive(set)
	}
	p.moveSoon()
	if p.ns.Bodied() {
		p.collectBodies()
	}
	if p.ns.Located() {
		return p.openLocator()
	}
	return nil
}

// invite issues a ticket.
func (n *Node) invite(role node.Role) (string, error) {
	if n.process == nil || n.process.ns == nil {
		return "", errNoNamespace
	}
	return n.process.ns.Invite(membership.InviteOptions{Role: role}, [][]byte{n.address()})
}

// address is the node's number, in place of a multiaddr.
func (n *Node) address() []byte { return binary.BigEndian.AppendUint32(nil, uint32(n.number)) }

// redeem joins by a ticket; the inviter answers at once, without a network.
func (n *Node) redeem(ticket string) error {
	t, request, err := n.request(ticket)
	if err != nil {
		return err
	}
	reply, _, err := n.cluster.byID[t.Inviter].answer(n.id, request)
	if err != nil {
		return err
	}
	return n.joined(t, reply)
}

// request reads a ticket and makes the message that redeems it.
func (n *Node) request(ticket string) (*membership.Ticket, []byte, error) {
	t, err := membership.ParseTicket(ticket)
	if err != nil {
		return nil, nil, err
	}
	request, err := membership.RequestJoin(n.process.core.ID, t, [][]byte{n.address()})
	return t, request, err
}

// answer decides upon a request to join.
func (n *Node) answer(from node.ID, request []byte) (reply []byte, joiner [][]byte, err error) {
	return n.process.core.AnswerJoin(context.Background(), from, request, func(id node.ID) [][]byte {
		if m := n.cluster.byID[id]; m != nil {
			return [][]byte{m.address()}
		}
		return nil
	})
}

// joined takes the inviter's reply.
func (n *Node) joined(t *membership.Ticket, reply []byte) error {
	p := n.process
	j, err := p.core.ReadJoin(t, reply)
	if err != nil {
		return err
	}
	if p.ns != nil {
		return p.ns.Rejoin(context.Background(), j)
	}
	return p.adopt(j.State)
}

// Join makes another node invite this one, with that role, or to write if it is 0.
// This one presents the ticket over the network. The transport of the ticket is not
// modelled.
func (n *Node) Join(inviter int, role node.Role) {
	p := n.process
	if p == nil {
		return
	}
	p.now(func() {
		ticket, err := n.cluster.nodes[inviter].invite(role)
		if err != nil {
			n.cluster.Watch.Refused(n.number, err)
			return
		}
		n.tickets[inviter] = ticket
		p.present(ticket, inviter)
	})
}

// Redeem presents once more the last ticket that another node gave this one in Join.
func (n *Node) Redeem(inviter int) {
	if p, ticket := n.process, n.tickets[inviter]; p != nil && ticket != "" {
		p.now(func() { p.present(ticket, inviter) })
	}
}

// JoinAgain presents the tickets of a node that has not got in by them, as a person does
// whose join has failed. The inviter may have made it a member, and its answer been lost.
func (n *Node) JoinAgain() {
	if n.process == nil || n.process.ns != nil {
		return
	}
	for _, inviter := range slices.Sorted(maps.Keys(n.tickets)) {
		n.Redeem(inviter)
	}
}

// present shows a ticket to its inviter, over the network.
func (p *process) present(ticket string, inviter int) {
	n := p.node
	c := n.cluster
	refuse := func(err error) { c.Watch.Refused(n.number, err) }
	t, request, err := n.request(ticket)
	if err != nil {
		refuse(err)
		return
	}
	there := c.nodes[inviter]
	p.routine(func(ctx context.Context) {
		reply, _, err := p.exchange(ctx, there, joinTimeout, serveJoin, request)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			p.flush()
			err = n.joined(t, reply)
			p.hears()
		}
		if err != nil {
			refuse(err)
			return
		}
		n.world.Note("joined", n.number, inviter, nil)
		n.Sync(inviter, syncing.Ask{}, nil) // so that the newcomer has what there is
	})
}

// serveJoin answers a stream of the join protocol.
func serveJoin(ctx context.Context, c *conn) {
	n := c.process.node
	request, err := c.receive(ctx, joinTimeout)
	if err != nil {
		return
	}
	reply, _, err := n.answer(n.cluster.nodes[c.remote].id, request)
	if err != nil {
		n.cluster.Watch.Refused(n.number, err)
	}
	if reply != nil {
		c.say(reply)
	}
}

// SetRole gives a member another role; for a time, if that is not 0.
func (n *Node) SetRole(member int, role node.Role, term time.Duration) {
	n.joinedDo(func(p *process) error {
		var expires time.Time
		if term > 0 {
			expires = n.wall.now().Add(term)
		}
		id := n.cluster.nodes[member].id
		return forced(func(force bool) error { return p.ns.SetRole(context.Background(), id, role, expires, force) })
	})
}

// forced does something, with force where that leaves behind what the node may hold alone.
func forced(do func(force bool) error) error {
	if err := do(false); !errors.Is(err, node.ErrHeldHere) {
		return err
	}
	return do(true)
}

// Remove ends a membership, this node's own or another's.
func (n *Node) Remove(member int) {
	n.joinedDo(func(p *process) error {
		id := n.cluster.nodes[member].id
		return forced(func(force bool) error { return p.ns.Remove(context.Background(), id, force) })
	})
}

// Lapse makes the members wait for one of them no longer.
func (n *Node) Lapse(member int) {
	n.joinedDo(func(p *process) error { return p.ns.Lapse(context.Background(), n.cluster.nodes[member].id) })
}

// do has the process do something with its namespace; a frozen process does it when it goes on.
// refused is told why it cannot, or why it failed.
func (n *Node) do(work func(p *process) error, refused func(error)) {
	p := n.process
	if p == nil {
		refused(ErrDown)
		return
	}
	p.now(func() {
		err := errNoNamespace
		if p.ns != nil {
			err = work(p)
		}
		if err != nil {
			n.cluster.Watch.Refused(n.number, err)
			refused(err)
		}
	})
}

// joinedDo does so once all that was written before is durable.
func (n *Node) joinedDo(work func(p *process) error) {
	n.do(func(p *process) error {
		p.flush()
		err := work(p)
		p.hears()
		return err
	}, func(error) {})
}

// hears tells the watcher if the node has heard that it had lost the right to write. It does
// so, too, if the right was given back with the same news. What it has not committed yet it
// does not hold.
func (p *process) hears() {
	n := p.node
	if p.ns == nil || p.cut() || n.process != p || n.disk.Full {
		return
	}
	was := n.right
	n.right = p.ns.Members().Right(n.id)
	if r := p.ns.Removal(); r != nil && !r.Expired {
		n.right = 0
	}
	if was != 0 && (n.right == 0 || n.right > was) {
		n.cluster.History.Heard(n.number, p.records())
	}
}
