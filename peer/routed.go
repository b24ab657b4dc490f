package peer

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/syncd-io/syncd/internal/netio/stream"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// routeProtocol is the libp2p protocol of routed questions: one after the other on a
// stream.
const routeProtocol protocol.ID = "/syncd/route/1.0.0"

// Bounds of the streams of routed questions.
const (
	// routeSilence is for how long an asker's stream may be silent. The asker closes it before:
	// see stream.Pool.
	routeSilence = 60 * time.Second
	// routeLarge questions of more than routeSmall bytes are read at once, routeLargePeer of
	// one peer. They take 34 MiB, and each other question 64 KiB.
	routeSmall     = 64 << 10
	routeLarge     = 32
	routeLargePeer = 4
	// routeBuffer is that of each direction of a stream: most questions fit in.
	routeBuffer = 4 << 10
	// routeWaiting writes of routeWaitingBytes wait for a place at one peer: what a host takes in a
	// second or so.
	routeWaiting      = 256
	routeWaitingBytes = 8 << 20
)

// routing is what a node knows and keeps for its own routed questions.
type routing struct {
	places *stream.Places // of this node's own
	paging chan struct{}  // a place for each page that is fetched
	large  *stream.Places // of peers' that are large
	pool   *stream.Pool
	// waiting are writes that wait for a place.
	waiting stream.Waiting
}

// openRouting makes the places of routed questions, and the pool of their streams.
func (n *Node) openRouting() {
	r := &n.routing
	r.places, r.paging = stream.NewPlaces(syncing.MaxRoutedInAll, syncing.MaxRouted), make(chan struct{}, scanPages)
	r.large = stream.NewPlaces(routeLarge, routeLargePeer)
	r.waiting.Most, r.waiting.MostBytes = routeWaiting, routeWaitingBytes
	r.pool = stream.NewPool(n.ctx, syncing.MaxRouted, func(ctx context.Context, id ID) (*stream.Carrier, error) {
		if !n.host.Connected(id) {
			if err := n.host.Dial(ctx, id, nil); err != nil {
				return nil, err
			}
		}
		s, err := n.host.Open(ctx, id, routeProtocol)
		if err != nil {
			return nil, err
		}
		return n.routeCarrier(s), nil
	})
}

// askRouted asks a peer, for which its caller has a place; begin makes the question. The message
// may be a refusal. sent says that the question may have reached the peer.
func (n *Node) askRouted(ctx context.Context, id ID, begin func(node.ID) (*wire.Ask, error)) (ask *wire.Ask, m wire.Message, sent bool, err error) {
	if ask, err = begin(node.ID(id)); err != nil { // before a dial
		return nil, nil, false, err
	}
	m, sent, err = n.routing.pool.Exchange(ctx, id, wire.Append(nil, ask))
	return ask, m, sent, err
}

// placeFor waits for a place for a question to a peer. Of writes only so many wait: a host that does
// not answer would otherwise hold all that is written meanwhile. ErrBusy: too many wait.
func (n *Node) placeFor(ctx context.Context, id ID, q wire.Question) (leave func(), err error) {
	r := &n.routing
	hold, ok := q.(*wire.AskHold)
	if !ok {
		return r.places.Take(ctx, id)
	}
	bytes := 0
	for i := range hold.Records {
		bytes += len(hold.Records[i].Key) + len(hold.Records[i].Value)
	}
	stop, ok := r.waiting.Enter(id, bytes)
	if !ok {
		return nil, ErrBusy
	}
	defer stop()
	return r.places.Take(ctx, id)
}

func (n *Node) routeCarrier(s network.Stream) *stream.Carrier {
	o := n.carrying()
	o.Buffer = routeBuffer
	return stream.New(s, o)
}

// serveRoute answers the routed questions of a peer, one after the other.
func (n *Node) serveRoute(s network.Stream) {
	remote := s.Conn().RemotePeer()
	log := n.log.With(n.logCaller(remote))
	talk := n.routeCarrier(s)
	if !n.isMember(remote) {
		log.Info("a routed question was denied: not a member")
		n.refuse(talk, "route", ErrDenied)
		return
	}
	for {
		switch asked, err := n.serveRouted(talk, remote); {
		case err == nil:
		case errors.Is(err, io.EOF): // the peer has asked all that it wants
			_ = talk.Close()
			return
		case talk.Over():
			return
		default:
			log.Debug("a routed question was not answered", logError(err))
			if !asked {
				n.metrics.Refused("route", err)
			}
			talk.Refuse(err)
			return
		}
	}
}

// serveRouted reads the next question, and if it was asked, answers it; io.EOF: there is none.
func (n *Node) serveRouted(talk *stream.Carrier, remote ID) (asked bool, err error) {
	length, err := talk.Await(routeSilence)
	if err != nil {
		return false, err
	}
	if length > routeSmall {
		leave, err := n.routing.large.Take(n.ctx, remote)
		if err != nil {
			return false, err
		}
		defer leave()
	}
	question, _, err := stream.Next[*wire.Ask](talk)
	if err != nil {
		return false, err
	}
	reply, err := n.answerRouted(remote, question)
	n.metrics.Asked(question, err)
	if err != nil {
		return true, err
	}
	frame := wire.Append(nil, reply)
	n.core.Questions.Charge(node.ID(remote), len(frame))
	return true, talk.Write(frame)
}

func (n *Node) answerRouted(remote ID, question *wire.Ask) (*wire.Reply, error) {
	routed, err := n.core.Routed(node.ID(remote), question)
	if err != nil {
		return nil, err
	}
	defer routed.Done()
	ns := n.namespaceByID(routed.Namespace().ID())
	if ns == nil || ns.core.Rule() == nil || !ns.gate.enter() { // it is not cut into shards, or is being dropped
		return nil, ErrDenied
	}
	defer ns.gate.leave()
	return shards.Reply(ns.ctx, routed)
}
