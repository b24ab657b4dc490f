package peer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/syncd-io/syncd/internal/ask"
	"github.com/syncd-io/syncd/internal/machine"
	"github.com/syncd-io/syncd/internal/netio/stream"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// askProtocol is the libp2p protocol of a question to a member: one message each way.
const askProtocol protocol.ID = "/syncd/ask/1.0.0"

// ask asks a peer about the shard.
func (sh *shard) ask(ctx context.Context, id ID, patience time.Duration, q wire.Question) (ask.Answered, error) {
	return sh.ns.node.ask(ctx, sh.set, id, patience, q)
}

// ask asks a peer, which may wait for as long as patience says until what is asked for has
// come about. A peer that has too much to do is asked again.
func (n *Node) ask(ctx context.Context, about ask.About, id ID, patience time.Duration, q wire.Question) (ask.Answered, error) {
	if _, err := about.Ask(node.ID(id), patience, q); err != nil { // before a dial
		return ask.Answered{}, err
	}
	begun := time.Now()
	retry := n.core.Backoff()
	for {
		before := n.host.Network().ConnsToPeer(id)
		a, err := n.askOnce(ctx, about, id, patience, q)
		if ctx.Err() == nil && left(before, err) {
			a, err = n.askOnce(ctx, about, id, patience, q)
		}
		if wait, again := retry.Again(time.Since(begun), err); again && machine.Sleep(ctx, wait) == nil {
			continue
		}
		a.Took = time.Since(begun)
		return a, err
	}
}

func (n *Node) askOnce(ctx context.Context, about ask.About, id ID, patience time.Duration, q wire.Question) (a ask.Answered, err error) {
	if err := n.host.Dial(ctx, id, nil); err != nil {
		return a, err
	}
	leave, err := n.asking.Take(ctx, id)
	if err != nil {
		return a, err
	}
	defer leave()
	s, err := n.host.Open(ctx, id, askProtocol)
	if err != nil {
		return a, err
	}
	o := n.carrying()
	o.Idle += patience
	talk := stream.New(s, o)
	question, err := about.Ask(node.ID(id), patience, q)
	if err != nil {
		talk.Cut()
		return a, err
	}
	a.Left = n.now()
	m, err := talk.Exchange(ctx, wire.Append(nil, question))
	a.Came = n.now()
	if err != nil {
		return a, err
	}
	if a.Reply, err = about.Answered(node.ID(id), question, m); err != nil {
		talk.Cut()
		return a, err
	}
	return a, talk.Close()
}

// serveAsk answers a question of a peer. Nothing about a namespace leaves before the peer
// is found in its list of members and has proved the secret.
func (n *Node) serveAsk(s network.Stream) {
	remote := s.Conn().RemotePeer()
	leave, ok := n.core.Sessions.Greet(node.ID(remote), n.isMember(remote))
	talk := stream.New(s, n.carrying())
	if !ok {
		n.refuse(talk, "ask", fmt.Errorf("%w: too many questions are about to be asked", ErrBusy))
		return
	}
	question, _, err := stream.First[*wire.Ask](talk, maxAsk)
	leave()
	if err != nil {
		n.refuse(talk, "ask", err)
		return
	}
	defer talk.Unwatch()
	reply, err := n.answer(n.ctx, talk, remote, question)
	n.metrics.Asked(question, err)
	switch {
	case talk.Over(): // the peer waits no longer
	case errors.Is(err, ErrDenied):
		n.log.With(n.logCaller(remote)).Info("a question was denied: not a member, or what it asks about is not held here")
		talk.Refuse(ErrDenied)
	case err != nil:
		n.log.With(n.logCaller(remote)).Debug("a question was not answered", logError(err))
		talk.Refuse(err)
	default:
		talk.Reply(reply)
	}
}

// answer waits until a question can be answered for good, or for as long as the peer asks
// for.
func (n *Node) answer(ctx context.Context, talk *stream.Carrier, remote ID, question *wire.Ask) (*wire.Reply, error) {
	asked, err := n.core.Asked(node.ID(remote), question)
	if err != nil {
		return nil, err
	}
	defer asked.Done()
	ns := n.namespaceByID(asked.NS.ID())
	if ns == nil || !ns.gate.enter() { // it is being dropped
		return nil, ErrDenied
	}
	defer ns.gate.leave()
	ctx, cancel := ns.bind(ctx)
	defer cancel()
	woken, patience := make(chan struct{}, 1), time.After(asked.Patience())
	reply, err := ask.Serve(asked, func() { machine.Wake(woken) }, func() (late bool, err error) {
		select {
		case <-woken:
			return false, nil
		case <-patience:
			return true, nil
		case <-talk.Watch():
			return false, ErrUnreachable
		case <-ctx.Done():
			return false, reconcile.ErrPeer
		}
	})
	if errors.Is(err, ErrUnreachable) {
		talk.Cut()
	}
	return reply, err
}

// Why asks members what they hold under a key, and explains how that compares with what
// this node holds. It asks the peers named, or all other members, all at the same time.
// A peer that does not answer has StandingUnknown, and a cause.
func (ns *Namespace) Why(ctx context.Context, key []byte, peers ...ID) (all []status.Why, err error) {
	err = ns.within(ctx, fmt.Sprintf("why %q in", clip(key)), func(ctx context.Context) error {
		if ns.core.Bodied() {
			if err := ns.hosts.CheckKey(key); err != nil {
				return err
			}
		}
		sh, err := ns.atHost(ns.shardOf(key))
		if err != nil {
			return ns.orRemoved(err)
		}
		found, err := ns.inquiry().Why(ctx, sh.set, key, nodeIDs(peers))
		if err != nil {
			return err
		}
		for i := range found {
			found[i].Verified = sh.verified.With(found[i].Peer).At
		}
		all = found
		return nil
	})
	return all, err
}

// nodeIDs are ids as the decisions have them.
func nodeIDs(ids []ID) []node.ID {
	out := make([]node.ID, len(ids))
	for i, id := range ids {
		out[i] = node.ID(id)
	}
	return out
}
