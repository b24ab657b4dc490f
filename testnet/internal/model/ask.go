package model

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/syncd-io/syncd/internal/ask"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile/wire"
	"github.com/syncd-io/syncd/testnet/internal/check"
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

// ask asks another node, which may be busy first.
func (p *process) ask(ctx context.Context, remote int, patience time.Duration, q wire.Question) (*Question, error) {
	begun, retry := p.node.world.Now(), p.core.Backoff()
	for {
		asked, err := p.askOnce(ctx, remote, patience, q)
		wait, again := retry.Again(p.node.world.Now()-begun, err)
		if !again || (hosts{p}).Sleep(ctx, wait) != nil {
			return asked, err
		}
	}
}

// askOnce returns the question also where there is no answer, unless it could not be asked.
func (p *process) askOnce(ctx context.Context, remote int, patience time.Duration, q wire.Question) (*Question, error) {
	n := p.node
	there := n.cluster.nodes[remote]
	ask, err := p.set.Ask(there.id, patience, q)
	if err != nil {
		return nil, err
	}
	asked := &Question{Node: n.number, Peer: remote, Ask: ask}
	frame := wire.Append(nil, ask)
	if n.old {
		frame[versionAt(frame)] = oldVersion
	}
	if frame, _, err = p.exchange(ctx, there, idleTimeout+patience, asked.serve, frame); err != nil {
		return asked, err
	}
	m, _, err := read[wire.Message](frame)
	if err == nil {
		asked.Reply, err = p.set.Answered(there.id, ask, m)
	}
	return asked, err
}

// serve answers the question, at once or when that can be done for good, unless the asker is
// gone before.
func (q *Question) serve(ctx context.Context, c *conn) {
	question, _, ok := greeting[*wire.Ask](ctx, c)
	if !ok {
		return
	}
	p := c.process
	asked, err := p.core.Asked(p.node.cluster.nodes[q.Node].id, question)
	if err != nil {
		c.refuse(err)
		return
	}
	defer asked.Done()
	until := p.node.world.Now() + asked.Patience()
	reply, err := ask.Serve(asked, func() { c.Put(arrival{}) }, func() (late bool, err error) {
		a, err := c.take(ctx, until)
		return p.node.world.Now() >= until, cmp.Or(err, a.broken)
	})
	switch {
	case errors.Is(err, ErrDown), errors.Is(err, ErrUnreachable):
	case err != nil:
		c.refuse(err)
	default:
		p.said(c, q, question, reply)
	}
}

// said sends an answer, and shows it to the checker.
func (p *process) said(c *conn, q *Question, ask *wire.Ask, reply *wire.Reply) {
	n := p.node
	told := *q
	told.Ask, told.Reply = ask, reply
	told.There = p.view(told.key())
	q.There = told.There
	n.world.Note("answer", n.number, q.Node, nil)
	n.cluster.Watch.Answered(&told)
	c.say(wire.Append(nil, reply))
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
		p.routine(func(ctx context.Context) {
			question, err := p.ask(ctx, remote, 0, q)
			if ctx.Err() != nil {
				return
			}
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

// Status asks another node how it is; the watcher has the answer.
func (n *Node) Status(remote int) {
	n.joinedDo(func(p *process) error {
		p.routine(func(ctx context.Context) { _, _ = p.ask(ctx, remote, 0, &wire.AskStatus{}) })
		return nil
	})
}
