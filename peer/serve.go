package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// serving is a handler of streams while the node is open: a node that closes waits for
// no message of a peer.
func (n *Node) serving(serve network.StreamHandler) network.StreamHandler {
	return func(stream network.Stream) {
		if !n.gate.enter() {
			stream.Reset()
			return
		}
		defer n.gate.leave()
		stop := context.AfterFunc(n.ctx, func() { stream.Reset() })
		defer stop()
		serve(stream)
	}
}

// serveSync answers a sync that a peer begins. Its id is the connection's, and proven.
// Nothing about the namespace leaves before the id is found in its member list. A
// stranger, and a peer that asks for what is not there, get one and the same answer.
func (n *Node) serveSync(stream network.Stream) {
	remote := stream.Conn().RemotePeer()
	leave, ok := n.core.Sessions.Greet(node.ID(remote), n.isMember(remote))
	throttles, release := n.bandwidth.of(remote)
	defer release()
	talk := newCarrier(stream, n.limits, throttles)
	talk.pace.done = n.ctx.Done()
	if !ok {
		n.putOff(talk, remote, fmt.Errorf("%w: too many peers are about to begin a sync", ErrBusy))
		return
	}
	hello, size, err := talk.receiveHello()
	leave()
	log := n.log.With(n.logCaller(remote))
	if err != nil {
		log.Debug("a sync did not begin", logError(err))
		n.metrics.refused("sync", err)
		talk.refuseMalformed(err)
		return
	}
	part, done, err := n.core.Answer(node.ID(remote), hello)
	switch {
	case errors.Is(err, reconcile.ErrVersion):
		log.Info("a peer speaks another version of the protocol", slog.Any("version", hello.Version))
		n.refuse(talk, "sync", err)
		return
	case errors.Is(err, ErrBusy):
		n.putOff(talk, remote, err)
		return
	case errors.Is(err, ErrPaused):
		n.refusePaused(talk, remote)
		return
	case errors.Is(err, ErrRemoved):
		log.Info("a former member called, and was told what removed it")
		n.refuse(talk, "sync", err)
		return
	case err != nil:
		n.deny(talk, remote)
		return
	}
	defer done()
	ns := n.namespaceByID(part.Namespace().ID())
	sh := n.shard(part.Set())
	if ns == nil || part.Set() != nil && sh == nil || !ns.gate.enter() { // it is being dropped
		n.deny(talk, remote)
		return
	}
	defer ns.gate.leave()
	ctx, cancel := bind(n.ctx, ns.life(sh))
	defer cancel()
	ctx, end, err := ns.engage(ctx, remote)
	if err != nil {
		n.refusePaused(talk, remote)
		return
	}
	defer end()
	ask := part.AskOf(hello)
	_, err = ns.converse(ctx, side{
		shard: sh, remote: remote, incoming: true, by: stream.Conn(), dry: hello.DryRun, whole: ask.Moves(), all: len(ask.Prefix) == 0, control: ask.Control, part: ask.Span != (wire.Span{}),
		begin: func(enter func(reconcile.Step)) (*node.Conversation, error) {
			return part.Respond(ctx, node.ID(remote), hello, size, enter), nil
		},
		stream: func() (*carrier, error) { return talk, nil },
	})
	switch {
	case talk.begun: // the session has told the peer how it ended
	case errors.Is(err, reconcile.ErrBusy): // for the turn, too
		talk.refuse(err)
	default:
		talk.refuse(reconcile.ErrPeer)
	}
}

// refuse counts a refusal, and tells the peer why.
func (n *Node) refuse(talk *carrier, protocol string, err error) {
	n.metrics.refused(protocol, err)
	talk.refuse(err)
}

// deny gives a stranger, and a member that asks for what is not here, the same
// answer.
func (n *Node) deny(talk *carrier, remote ID) {
	n.log.With(n.logCaller(remote)).Info("a sync was denied: not a member, or what it asks for is not held here")
	n.refuse(talk, "sync", ErrDenied)
}

// refusePaused tells a member that a person has paused what it asks for.
func (n *Node) refusePaused(talk *carrier, remote ID) {
	n.log.With(n.logCaller(remote)).Info("a sync was refused: the namespace or the peer is paused here")
	n.refuse(talk, "sync", ErrPaused)
}

// putOff tells a peer to try again later.
func (n *Node) putOff(talk *carrier, remote ID, why error) {
	n.log.Info("a sync was put off", n.logCaller(remote), logError(why))
	n.refuse(talk, "sync", why)
}
