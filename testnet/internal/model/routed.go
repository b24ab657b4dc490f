package model

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// routePatience is how long a routed read or write goes on, as in package peer.
const routePatience = 10 * time.Second

// routed is a routed question that a node has asked another.
type routed struct {
	process *process
	remote  int
	stream  *sim.Stream
	timer   *timer
	over    bool
	taken   bool // a process at the other side has taken the stream
	refused bool // there was none
	done    func(m wire.Message, sent bool, err error)
}

// route asks another node a routed question. sent says that it may have reached the other.
func (p *process) route(remote int, ask *wire.Ask, done func(m wire.Message, sent bool, err error)) {
	n := p.node
	q := &routed{process: p, remote: remote, done: done}
	there := n.cluster.nodes[remote]
	q.stream = n.cluster.Net.Dial(n.number, remote, func(s *sim.Stream) bool {
		q.taken = there.acceptRoute(s, n.number)
		q.refused = !q.taken
		return q.taken
	})
	p.asking = append(p.asking, q.stream)
	q.timer = p.after(routePatience, func() { q.end(nil, fmt.Errorf("%w: %w", ErrUnreachable, ErrTimeout)) })
	q.stream.Receive = func(frame []byte) {
		p.now(func() {
			m, _, err := wire.Read(bytes.NewReader(frame))
			n.world.Note("routed", n.number, remote, frame)
			q.end(m, err)
		})
	}
	q.stream.Broken = func(err error) {
		p.now(func() { q.end(nil, fmt.Errorf("%w: %w", ErrUnreachable, err)) })
	}
	q.stream.Send(wire.Append(nil, ask))
}

func (q *routed) end(m wire.Message, err error) {
	if !q.over {
		q.cut()
		q.done(m, !q.refused, err)
	}
}

// cut ends a question whose answer is awaited no longer.
func (q *routed) cut() {
	if q.over {
		return
	}
	q.over = true
	q.timer.stop()
	q.process.asking = without(q.process.asking, q.stream)
	q.stream.Reset()
}

func without(all []*sim.Stream, one *sim.Stream) (left []*sim.Stream) {
	for _, s := range all {
		if s != one {
			left = append(left, s)
		}
	}
	return left
}

// acceptRoute answers a stream of a routed question.
func (n *Node) acceptRoute(s *sim.Stream, from int) bool {
	p := n.process
	if p == nil {
		return false
	}
	s.Receive = func(frame []byte) {
		p.now(func() { p.answerRouted(s, from, frame) })
	}
	return true
}

func (p *process) answerRouted(s *sim.Stream, from int, frame []byte) {
	n := p.node
	remote := n.cluster.nodes[from].id
	if !p.core.IsMember(remote) {
		p.refuse(s, from, node.ErrDenied)
		return
	}
	m, _, err := wire.Read(bytes.NewReader(frame))
	ask, ok := m.(*wire.Ask)
	if err != nil || !ok {
		p.refuse(s, from, fmt.Errorf("%w: no routed question: %w", reconcile.ErrProtocol, err))
		return
	}
	p.flush() // so that what is asked for is told as it is durable, and nothing is written in between
	question, err := p.core.Routed(remote, ask)
	if err != nil {
		p.refuse(s, from, err)
		return
	}
	defer question.Done()
	reply, err := shards.Reply(context.Background(), question)
	if err != nil {
		p.refuse(s, from, err)
		return
	}
	p.feign(ask, reply)
	n.world.Note("answer", n.number, from, nil)
	if n.answering { // it has done what was asked, and the asker does not hear of it
		n.answering = false
		panic(struck{})
	}
	answer := wire.Append(nil, reply)
	p.core.Questions.Charge(remote, len(answer))
	s.Send(answer)
	s.Close()
}
