package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/netio"
	"github.com/syncd-io/syncd/internal/netio/stream"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
)

// joinProtocol is the libp2p protocol with which a ticket is redeemed. There is one
// request and one reply, each a length (uvarint) and a CBOR map.
const joinProtocol protocol.ID = "/syncd/join/1.0.0"

// joinTimeout bounds both messages together.
const joinTimeout = 20 * time.Second

// Join redeems a ticket. It connects to the inviter, makes this node a member, opens
// the namespace here, and syncs it with the inviter at once. A sync that fails does not
// undo the join; JoinSync tells of it. If another namespace has the ticket's name here,
// Join appends a part of the id. A node may redeem the same ticket again until it
// expires. Where the namespace is here already, Join brings the role that the ticket
// gives, if it is a greater one.
func (n *Node) Join(ctx context.Context, text string) (*Namespace, error) {
	ns, _, err := n.JoinSync(ctx, text, SyncOptions{})
	if ns != nil {
		return ns, nil
	}
	return nil, err
}

// JoinSync is Join that tells what the first sync, with these options, has brought.
// The namespace is not nil once this node is a member; an error with it is that of
// the sync.
func (n *Node) JoinSync(ctx context.Context, text string, o SyncOptions) (*Namespace, reconcile.Report, error) {
	t, err := membership.ParseTicket(text)
	if err != nil {
		return nil, reconcile.Report{}, fmt.Errorf("join: %w", err)
	}
	if !n.gate.enter() {
		return nil, reconcile.Report{}, fmt.Errorf("join %s: %w", t.Name, ErrClosed)
	}
	defer n.gate.leave()
	ctx, cancel := bind(ctx, n.ctx)
	defer cancel()
	ns, err := n.join(ctx, t)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("%w: %w", err, cause)
		}
		return nil, reconcile.Report{}, fmt.Errorf("join %s at %s: %w", t.Name, t.Inviter, err)
	}
	report, err := ns.Sync(ctx, ID(t.Inviter), o)
	return ns, report, err
}

func (n *Node) join(ctx context.Context, t *membership.Ticket) (*Namespace, error) {
	inviter, addrs := ID(t.Inviter), netio.ParseAddrs(t.Addrs)
	if len(addrs) == 0 {
		return nil, fmt.Errorf("%w: the ticket has no address that this program can read; ask for a new one", ErrInvalid)
	}
	if err := n.able(ctx); err != nil { // the ticket can be used once
		return nil, err
	}
	request, err := membership.RequestJoin(n.core.ID, t, netio.AddrBytes(n.host.Dialable()))
	if err != nil {
		return nil, err
	}
	reply, err := n.askToJoin(ctx, inviter, addrs, request)
	if err != nil {
		return nil, err
	}
	joined, err := n.core.ReadJoin(t, reply)
	if err != nil {
		return nil, err
	}
	n.changing.Lock()
	defer n.changing.Unlock()
	sets, err := n.setsInStore(ctx)
	if err != nil {
		return nil, err
	}
	had := slices.ContainsFunc(joined.State.Parts(joined.Secret), func(k reconcile.Keys) bool { return slices.Contains(sets, k.ID) })
	for _, u := range n.shelved() {
		if u.id == t.Namespace {
			if u.files == "" {
				return nil, u.notServed()
			}
			if err := n.clearAway(u); err != nil {
				return nil, err
			}
			had = true
		}
	}
	ns := n.namespaceByID(t.Namespace)
	if ns != nil {
		err = ns.core.Rejoin(ctx, joined)
	} else {
		joined.State.Name = n.freeName(t.Name, t.Namespace)
		ns, err = n.addNamespace(ctx, joined.Secret, joined.State, had)
	}
	if err != nil {
		return nil, err
	}
	// The node is a member now, whatever becomes of the addresses.
	if err := n.meet(inviter, addrs, joined.Members); err != nil {
		n.log.Warn("the addresses of members could not be saved", logNamespace(ns), logError(err))
	}
	return ns, nil
}

// meet saves the addresses of an inviter and of the other members.
func (n *Node) meet(inviter ID, addrs []ma.Multiaddr, others []membership.Addresses) error {
	for _, m := range others {
		if addrs := netio.ParseAddrs(m.Addrs); len(addrs) > 0 {
			if err := n.book.Hear(ID(m.ID), addrs); err != nil {
				return err
			}
		}
	}
	// A peer that was removed from the book is added when its ticket is redeemed.
	return errors.Join(n.book.Give(inviter, nil), n.book.Hear(inviter, addrs))
}

// askToJoin sends the request to the inviter, whose id the connection proves,
// and returns the reply.
func (n *Node) askToJoin(ctx context.Context, inviter ID, addrs []ma.Multiaddr, request []byte) ([]byte, error) {
	n.host.Peerstore().AddAddrs(inviter, addrs, peerstore.TempAddrTTL)
	if err := n.host.Dial(ctx, inviter, addrs); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	s, err := n.host.Open(ctx, inviter, joinProtocol)
	if err != nil {
		return nil, err
	}
	defer s.Reset()
	cut := context.AfterFunc(ctx, func() { s.Reset() })
	defer cut()
	if err := stream.WriteMessage(s, request); err != nil {
		return nil, err
	}
	// Its error says less than the reply. Over QUIC it fails where the inviter, which has all
	// of the request, has answered and closed already.
	_ = s.CloseWrite()
	reply, err := stream.ReadMessage(s, membership.MaxJoinReply)
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("%w: no answer: %w", ErrUnreachable, ctx.Err())
	}
	return reply, err
}

// serveJoin redeems a ticket that a peer presents.
func (n *Node) serveJoin(s network.Stream) {
	remote := s.Conn().RemotePeer()
	leave, ok := n.core.Sessions.Greet(node.ID(remote), n.isMember(remote))
	if !ok {
		n.metrics.Refused("join", ErrBusy)
		s.Reset()
		return
	}
	defer leave()
	if err := s.SetDeadline(time.Now().Add(min(joinTimeout, n.limits.IdleTimeout))); err != nil {
		s.Reset()
		return
	}
	request, err := stream.ReadMessage(s, maxJoinRequest)
	if err != nil {
		n.metrics.Refused("join", err)
		n.log.Debug("a join did not begin", n.logCaller(remote), logError(err))
		s.Reset()
		return
	}
	reply, joiner, err := n.core.AnswerJoin(n.ctx, node.ID(remote), request, n.whereIs)
	if err != nil {
		n.metrics.Refused("join", err)
		n.log.Info("a ticket was refused", n.logCaller(remote), logError(err))
	} else {
		n.log.Info("a node has joined", logPeer(remote))
		if addrs := netio.ParseAddrs(joiner); len(addrs) > 0 {
			if err := errors.Join(n.book.Give(remote, nil), n.book.Learn(remote, addrs)); err != nil {
				n.log.Warn("the addresses of a new member could not be saved", logPeer(remote), logError(err))
			}
		}
	}
	if reply == nil || stream.WriteMessage(s, reply) != nil || s.Close() != nil {
		s.Reset()
	}
}

// whereIs gives the addresses of a member, this node included, in binary.
func (n *Node) whereIs(id node.ID) [][]byte {
	if ID(id) == n.self.id {
		return netio.AddrBytes(n.host.Dialable())
	}
	return netio.AddrBytes(n.book.Addrs(ID(id)))
}

// InviteOptions says what a ticket gives.
type InviteOptions struct {
	// Role of the node that joins. Default: RoleWrite.
	Role Role
	// Expires is for how long the ticket can be used, at most MaxInviteLife.
	// Default: 24 hours.
	Expires time.Duration
	// Uses is how many nodes can join by the ticket, at most MaxMembers. Default: 1.
	Uses int
}

// Invite issues a ticket with which nodes can join the namespace. It takes the role
// admin. The ticket is a secret: the first nodes that present it become members.
// Only this node can redeem it, so that it must run and be an admin then.
func (ns *Namespace) Invite(ctx context.Context, o InviteOptions) (ticket string, err error) {
	err = ns.within(ctx, "invite to", func(ctx context.Context) (err error) {
		if err := ctx.Err(); err != nil {
			return err
		}
		ticket, err = ns.core.Invite(membership.InviteOptions{Role: node.Role(o.Role), Expires: o.Expires, Uses: o.Uses}, netio.AddrBytes(ns.node.host.Dialable()))
		return err
	})
	return ticket, err
}

// Invites lists the tickets that this node has issued, the oldest first. Those that
// are used up or have expired are among them for a week.
func (ns *Namespace) Invites() []status.Invite { return ns.core.Invitations() }

// Revoke makes a ticket useless from now on; id is one of Invites, or the ticket
// itself. The nodes that have joined by it stay members. ErrNotFound: this node has
// issued no such ticket, or has forgotten it.
func (ns *Namespace) Revoke(ctx context.Context, id string) error {
	return ns.manage(ctx, "revoke a ticket", func(context.Context) error { return ns.core.Revoke(id) })
}
