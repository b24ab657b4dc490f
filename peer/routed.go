package peer

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
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
	// routeIdle is for how long the asker keeps a stream that it does not use. The other
	// side closes it after routeSilence, so that the asker does before it.
	routeIdle    = 30 * time.Second
	routeSilence = 60 * time.Second
	// routeKept streams to one peer are kept so long. Those beyond, as many as it answers
	// questions at once, are kept for routeSpare: while many questions arrive, few streams need
	// to be opened. Of all peers routeKeptInAll are kept. Each may reserve 256 KiB of libp2p's
	// memory on both sides.
	routeKept      = 2
	routeSpare     = time.Second
	routeKeptInAll = 64
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
	places *syncPlaces   // of this node's own
	paging chan struct{} // a place for each page that is fetched
	large  *syncPlaces   // of peers' that are large

	mu   sync.Mutex // guards what follows
	idle map[ID][]*routeStream
	kept int // of idle
	// waiting are writes that wait for a place; see stay.
	waiting map[ID]waitingWrites
}

// waitingWrites are writes that wait for a place at one peer.
type waitingWrites struct{ count, bytes int }

// routeStream is a stream that is open to a peer.
type routeStream struct {
	talk *stream.Carrier
	over *time.Timer // closes it while it is idle
}

// askRouted asks a peer, for which its caller has a place; begin makes the question. The message
// may be a refusal. sent says that the question may have reached the peer.
func (n *Node) askRouted(ctx context.Context, id ID, begin func(node.ID) (*wire.Ask, error)) (ask *wire.Ask, m wire.Message, sent bool, err error) {
	if ask, err = begin(node.ID(id)); err != nil { // before a dial
		return nil, nil, false, err
	}
	frame := wire.Append(nil, ask)
	if s := n.routing.take(id); s != nil {
		if m, err = n.exchange(ctx, id, s, frame); err == nil || ctx.Err() != nil {
			return ask, m, true, err
		}
		sent = true // the peer may have closed the stream meanwhile, or has gone; both sides may take the question twice
	}
	s, err := n.openRoute(ctx, id)
	if err != nil {
		return nil, nil, sent, err
	}
	m, err = n.exchange(ctx, id, s, frame)
	return ask, m, true, err
}

// placeFor waits for a place for a question to a peer. Of writes only so many wait: a host that does
// not answer would otherwise hold all that is written meanwhile. ErrBusy: too many wait.
func (n *Node) placeFor(ctx context.Context, id ID, q wire.Question) (leave func(), err error) {
	r := &n.routing
	hold, ok := q.(*wire.AskHold)
	if !ok {
		return r.places.take(ctx, id)
	}
	bytes := 0
	for i := range hold.Records {
		bytes += len(hold.Records[i].Key) + len(hold.Records[i].Value)
	}
	if !r.stay(id, 1, bytes) {
		return nil, ErrBusy
	}
	defer r.stay(id, -1, -bytes)
	return r.places.take(ctx, id)
}

// stay changes what waits of the writes to a peer, and reports whether it may. One may always.
func (r *routing) stay(id ID, count, bytes int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.waiting[id]
	of.count, of.bytes = of.count+count, of.bytes+bytes
	switch {
	case count > 0 && of.count > 1 && (of.count > routeWaiting || of.bytes > routeWaitingBytes):
		return false
	case of.count == 0:
		delete(r.waiting, id)
		return true
	case r.waiting == nil:
		r.waiting = map[ID]waitingWrites{}
	}
	r.waiting[id] = of
	return true
}

// openRoute opens a stream to a peer.
func (n *Node) openRoute(ctx context.Context, id ID) (*routeStream, error) {
	if !n.host.Connected(id) {
		if err := n.host.Dial(ctx, id, nil); err != nil {
			return nil, err
		}
	}
	s, err := n.host.Open(ctx, id, routeProtocol)
	if err != nil {
		return nil, err
	}
	return &routeStream{talk: n.routeCarrier(s)}, nil
}

func (n *Node) routeCarrier(s network.Stream) *stream.Carrier {
	o := n.carrying()
	o.Buffer = routeBuffer
	return stream.New(s, o)
}

// exchange sends a question over a stream, and keeps the stream once it has the answer.
func (n *Node) exchange(ctx context.Context, id ID, s *routeStream, frame []byte) (wire.Message, error) {
	m, err := s.talk.Exchange(ctx, frame)
	if err != nil {
		return nil, err
	}
	if _, answered := m.(*wire.Reply); !answered || s.talk.Over() || !n.routing.keep(n.ctx, id, s) {
		s.talk.Cut()
	}
	return m, nil
}

// take takes an idle stream to a peer, the one that was used last; nil: there is none.
func (r *routing) take(id ID) *routeStream {
	r.mu.Lock()
	defer r.mu.Unlock()
	for all := r.idle[id]; len(all) > 0; {
		s := all[len(all)-1]
		all = all[:len(all)-1]
		r.set(id, all)
		if s.over.Stop() { // else it is being closed
			return s
		}
	}
	return nil
}

// keep keeps a stream that is idle, and reports whether there is room.
func (r *routing) keep(life context.Context, id ID, s *routeStream) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.idle[id])
	if life.Err() != nil || before >= syncing.MaxRouted || r.kept >= routeKeptInAll {
		return false
	}
	idle := routeIdle
	if before >= routeKept {
		if r.kept >= routeKeptInAll/2 {
			return false // the other half is for peers with fewer
		}
		idle = routeSpare
	}
	s.over = time.AfterFunc(idle, func() {
		r.mu.Lock()
		r.set(id, slices.DeleteFunc(slices.Clone(r.idle[id]), func(o *routeStream) bool { return o == s }))
		r.mu.Unlock()
		_ = s.talk.Close() // the peer may be gone
	})
	r.set(id, append(slices.Clone(r.idle[id]), s))
	return true
}

// set exchanges the idle streams of a peer. mu is held.
func (r *routing) set(id ID, all []*routeStream) {
	r.kept += len(all) - len(r.idle[id])
	if len(all) == 0 {
		delete(r.idle, id)
		return
	}
	if r.idle == nil {
		r.idle = map[ID][]*routeStream{}
	}
	r.idle[id] = all
}

// close closes the streams that are idle. The node's context is over: no more are kept.
func (r *routing) close() {
	r.mu.Lock()
	idle := r.idle
	r.idle, r.kept = nil, 0
	r.mu.Unlock()
	for _, all := range idle {
		for _, s := range all {
			if s.over.Stop() {
				s.talk.Cut()
			}
		}
	}
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
				n.metrics.refused("route", err)
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
		leave, err := n.routing.large.take(n.ctx, remote)
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
	n.metrics.asked(question, err)
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
