package model

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// routePatience is how long a routed read or write goes on, as in package peer.
const routePatience = 10 * time.Second

// request is one message to another node, on a stream of its own, and the one frame that
// answers it.
type request struct {
	process *process
	stream  *sim.Stream
	timer   *timer
	over    bool
	refused bool // no process at the other side has taken the stream
	done    func(frame []byte, err error)
}

// request sends a message, and calls done once, unless the process ends: with what answers it
// in time, or why nothing does.
func (p *process) request(to *Node, wait time.Duration, accept func(*sim.Stream) bool, message []byte, done func(frame []byte, err error)) *request {
	q := &request{process: p, done: done}
	q.stream = p.node.cluster.Net.Dial(p.node.number, to.number, func(s *sim.Stream) bool {
		q.refused = !accept(s)
		return !q.refused
	})
	p.asking = append(p.asking, q.stream)
	q.timer = p.after(wait, func() { q.end(nil, fmt.Errorf("%w: %w", ErrUnreachable, ErrTimeout)) })
	q.stream.Receive = func(frame []byte) { p.now(func() { q.end(frame, nil) }) }
	q.stream.Broken = func(err error) {
		p.now(func() { q.end(nil, fmt.Errorf("%w: %w", ErrUnreachable, err)) })
	}
	q.stream.Send(message)
	return q
}

func (q *request) end(frame []byte, err error) {
	if q.over {
		return
	}
	q.over = true
	q.timer.stop()
	q.process.asking = slices.DeleteFunc(q.process.asking, func(s *sim.Stream) bool { return s == q.stream })
	if err == nil {
		q.stream.Close()
	} else {
		q.stream.Reset()
	}
	q.done(frame, err)
}

// route asks another node a routed question. sent says that it may have reached the other.
func (p *process) route(remote int, ask *wire.Ask, done func(m wire.Message, sent bool, err error)) {
	n := p.node
	there := n.cluster.nodes[remote]
	var q *request
	q = p.request(there, routePatience, func(s *sim.Stream) bool {
		return there.answers(s, func(q *process, frame []byte) { q.answerRouted(s, n.number, frame) })
	}, wire.Append(nil, ask), func(frame []byte, err error) {
		var m wire.Message
		if err == nil {
			m, _, err = wire.Read(bytes.NewReader(frame))
			n.world.Note("routed", n.number, remote, frame)
		}
		done(m, !q.refused, err)
	})
}

// answers has the process answer what arrives on a stream; false: there is none.
func (n *Node) answers(s *sim.Stream, answer func(p *process, frame []byte)) bool {
	p := n.process
	if p == nil {
		return false
	}
	s.Receive = func(frame []byte) { p.now(func() { answer(p, frame) }) }
	return true
}

// answerRouted answers a routed question.
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
