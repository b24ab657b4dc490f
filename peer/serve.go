package peer

import (
	"context"
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/internal/netio/stream"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// carrying is how the node carries messages over a stream.
func (n *Node) carrying() stream.Options {
	return stream.Options{Idle: n.limits.IdleTimeout, MinRate: n.limits.MinRate, Bandwidth: n.bandwidth, Done: n.ctx.Done()}
}

// serving is a handler of streams while the node is open: a node that closes waits for
// no message of a peer.
func (n *Node) serving(serve network.StreamHandler) network.StreamHandler {
	return func(s network.Stream) {
		if !n.gate.enter() {
			s.Reset()
			return
		}
		defer n.gate.leave()
		stop := context.AfterFunc(n.ctx, func() { s.Reset() })
		defer stop()
		serve(s)
	}
}

// serveSync answers a sync that a peer begins. Its id is the connection's, and proven.
// Nothing about the namespace leaves before the id is found in its member list. A
// stranger, and a peer that asks for what is not there, get one and the same answer.
func (n *Node) serveSync(s network.Stream) {
	remote := s.Conn().RemotePeer()
	leave, ok := n.core.Sessions.Greet(node.ID(remote), n.isMember(remote))
	talk := stream.New(s, n.carrying())
	if !ok {
		n.turnAway(talk, remote, putOff, fmt.Errorf("%w: too many peers are about to begin a sync", ErrBusy))
		return
	}
	hello, size, err := stream.First[*wire.Hello](talk, maxHello)
	leave()
	log := n.log.With(n.logCaller(remote))
	if err != nil {
		log.Debug("a sync did not begin", logError(err))
		n.refuse(talk, "sync", err)
		return
	}
	part, done, err := n.core.Answer(node.ID(remote), hello)
	if err != nil {
		what := denied
		switch {
		case errors.Is(err, reconcile.ErrVersion):
			what = "a peer speaks another version of the protocol"
		case errors.Is(err, ErrBusy):
			what = putOff
		case errors.Is(err, ErrPaused):
			what = paused
		case errors.Is(err, ErrRemoved):
			what = "a former member called, and was told what removed it"
		default:
			err = ErrDenied
		}
		n.turnAway(talk, remote, what, err)
		return
	}
	defer done()
	ns := n.namespaceByID(part.Namespace().ID())
	sh := n.shard(part.Set())
	if ns == nil || part.Set() != nil && sh == nil || !ns.gate.enter() { // it is being dropped
		n.turnAway(talk, remote, denied, ErrDenied)
		return
	}
	defer ns.gate.leave()
	ctx, cancel := bind(n.ctx, ns.life(sh))
	defer cancel()
	ctx, end, err := ns.engage(ctx, remote)
	if err != nil {
		n.turnAway(talk, remote, paused, ErrPaused)
		return
	}
	defer end()
	_, err = ns.converse(ctx, side{
		ask: part.AskOf(hello), shard: sh, remote: remote, incoming: true, by: s.Conn(),
		begin: func(enter func(reconcile.Step)) (*node.Conversation, error) {
			return part.Respond(ctx, node.ID(remote), hello, size, enter), nil
		},
		stream: func() (*stream.Carrier, error) { return talk, nil },
	})
	switch {
	case talk.Begun(): // the session has told the peer how it ended
	case errors.Is(err, reconcile.ErrBusy): // for the turn, too
		talk.Refuse(err)
	default:
		talk.Refuse(reconcile.ErrPeer)
	}
}

// refuse counts a refusal, and tells the peer why.
func (n *Node) refuse(talk *stream.Carrier, protocol string, err error) {
	n.metrics.Refused(protocol, err)
	talk.Refuse(err)
}

// What the log says of calls that are turned away. A stranger, and a member that asks for what is not
// here, get the same answer.
const (
	denied = "a sync was denied: not a member, or what it asks for is not held here"
	paused = "a sync was refused: the namespace or the peer is paused here"
	putOff = "a sync was put off"
)

// turnAway logs that a sync does not begin, and tells the peer why.
func (n *Node) turnAway(talk *stream.Carrier, remote ID, what string, why error) {
	n.log.Info(what, n.logCaller(remote), logError(why))
	n.refuse(talk, "sync", why)
}
