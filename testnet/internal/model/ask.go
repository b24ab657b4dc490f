package model

import (
	"bytes"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/internal/ask"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
	"github.com/syncd-io/syncd/testnet/internal/check"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// View is what is so at a node, for the checker; the nodes see only messages. The Door is
// without what depends on another node.
type View struct {
	check.Door
	List roster.Digest
}

// view is what is so at the node with regard to a key.
func (p *process) view(key []byte) (v View) {
	n := p.node
	v = View{check.Door{Clock: n.wall.now(), Skew: n.cluster.Skew, Unsigned: !n.cluster.Signed, Floor: p.mark.Floor, Recovers: p.mark.Recovering}, n.List()}
	index, records := n.cluster.Index(key), p.records()
	for i := range records {
		r := &records[i]
		if n.cluster.Index(r.Key) != index {
			continue
		}
		v.Keys++
		if !r.Deleted {
			v.Alive++
		}
		if bytes.Equal(r.Key, key) {
			v.Holds = r
		}
	}
	return v
}

// Question is one that a node has asked another. There is that of the other when it
// answered.
type Question struct {
	Node, Peer int
	Ask        *wire.Ask
	Reply      *wire.Reply
	There      View
}

// key is the key that the question is about; nil for none.
func (q *Question) key() []byte {
	if k, ok := q.Ask.Question.(*wire.AskKey); ok {
		return k.Held.Key
	}
	return nil
}

// question asks another node, which may be busy first.
func (p *process) question(remote int, patience time.Duration, q wire.Question, done func(*Question, error)) {
	begun := p.node.world.Now()
	retry := p.core.Backoff()
	var once func()
	once = func() {
		p.askOnce(remote, patience, q, func(asked *Question, err error) {
			if wait, again := retry.Again(p.node.world.Now()-begun, err); again {
				p.after(wait, once)
				return
			}
			done(asked, err)
		})
	}
	once()
}

func (p *process) askOnce(remote int, patience time.Duration, q wire.Question, done func(*Question, error)) {
	n := p.node
	there := n.cluster.nodes[remote]
	ask, err := p.set.Ask(there.id, patience, q)
	if err != nil {
		done(nil, err)
		return
	}
	asked := &Question{Node: n.number, Peer: remote, Ask: ask}
	frame := wire.Append(nil, ask)
	if n.old {
		frame[versionAt(frame)] = oldVersion
	}
	p.request(there, idleTimeout+patience, func(s *sim.Stream) bool { return there.acceptAsk(s, asked) }, frame, func(frame []byte, err error) {
		if err == nil {
			var m wire.Message
			if m, _, err = wire.Read(bytes.NewReader(frame)); err == nil {
				asked.Reply, err = p.set.Answered(there.id, ask, m)
			}
			n.world.Note("answered", n.number, remote, frame)
		}
		done(asked, err)
	})
}

// acceptAsk answers a stream of a question.
func (n *Node) acceptAsk(s *sim.Stream, asked *Question) bool {
	p := n.process
	if p == nil {
		return false
	}
	gone := func() {}
	p.greeted(s, asked.Node, func(frame []byte) { gone = p.answer(s, asked, frame) }, func([]byte) {}, func(error) { gone() })
	return true
}

// answer answers a question, at once or when that can be done for good, unless the asker is
// gone before.
func (p *process) answer(s *sim.Stream, q *Question, frame []byte) (gone func()) {
	n := p.node
	if n.old {
		frame = translated(frame)
	}
	first, _, err := wire.Read(bytes.NewReader(frame))
	question, ok := first.(*wire.Ask)
	if err != nil || !ok {
		p.refuse(s, q.Node, fmt.Errorf("%w: a first frame that is no question: %w", reconcile.ErrProtocol, err))
		return func() {}
	}
	asked, err := p.core.Asked(n.cluster.nodes[q.Node].id, question)
	if err != nil {
		p.refuse(s, q.Node, err)
		return func() {}
	}
	var look func(late bool)
	over, due := false, false
	stop := asked.Wait(func() {
		if !due {
			due = true
			p.after(0, func() { look(false) })
		}
	})
	deadline := p.after(asked.Patience(), func() { look(true) })
	gone = func() {
		if !over {
			over = true
			stop()
			deadline.stop()
			asked.Done()
		}
	}
	look = func(late bool) {
		due = false
		if over {
			return
		}
		reply, settled, err := ask.Answer(asked)
		switch {
		case err != nil:
			gone()
			p.refuse(s, q.Node, err)
		case settled || late:
			gone()
			p.said(s, q, question, reply)
		}
	}
	look(asked.Patience() == 0)
	return gone
}

// said sends an answer, and shows it to the checker.
func (p *process) said(s *sim.Stream, q *Question, ask *wire.Ask, reply *wire.Reply) {
	n := p.node
	told := *q
	told.Ask, told.Reply = ask, reply
	told.There = p.view(told.key())
	q.There = told.There
	n.world.Note("answer", n.number, q.Node, nil)
	n.cluster.Watch.Answered(&told)
	s.Send(wire.Append(nil, reply))
	s.Close()
	if n.answering {
		n.answering = false
		panic(struck{})
	}
}

// CrashAnswering makes the node crash when it has answered a question.
func (n *Node) CrashAnswering() { n.answering = true }

// Explained is what a node has been told of a key, and makes of it.
type Explained struct {
	*Question
	Why status.Why
	Err error // why there was no answer
	// Asked is what was so at Node when it asked, Here when it had the answer.
	Asked, Here View
	// Lapsed says that one of the two has lapsed, by Node's list.
	Lapsed bool
}

// Why asks another node about a key.
func (n *Node) Why(remote int, key string, told func(*Explained)) {
	n.joinedDo(func(p *process) error {
		p.flush()
		q, err := ask.HeldQuestion(p.set, []byte(key))
		if err != nil {
			return err
		}
		asked := p.view([]byte(key))
		p.question(remote, 0, q, func(question *Question, err error) {
			if question == nil {
				question = &Question{Node: n.number, Peer: remote}
			}
			e := &Explained{Question: question, Err: err, Asked: asked, Here: p.view([]byte(key))}
			id := n.cluster.nodes[remote].id
			list := p.ns.Members()
			e.Lapsed = list.Lapsed(id) || list.Lapsed(n.id)
			if err == nil {
				e.Why, e.Err = ask.Explain(p.set, id, q, question.Reply)
			} else {
				e.Why = ask.Unanswered(p.set, id, q, err)
			}
			told(e)
		})
		return nil
	})
}

// Status asks another node how it is.
func (n *Node) Status(remote int, told func(*Question, error)) {
	n.joinedDo(func(p *process) error {
		p.question(remote, 0, &wire.AskStatus{}, told)
		return nil
	})
}
