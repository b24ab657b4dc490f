package model

import (
	"context"
	"time"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// routePatience is how long a routed read or write goes on, as in package peer.
const routePatience = 10 * time.Second

// serveRouted answers a routed question.
func serveRouted(ctx context.Context, c *conn) {
	p := c.process
	n := p.node
	remote := n.cluster.nodes[c.remote].id
	frame, err := c.receive(ctx, helloTimeout)
	if err != nil {
		return
	}
	if !p.core.IsMember(remote) {
		c.refuse(node.ErrDenied)
		return
	}
	ask, _, err := read[*wire.Ask](frame)
	if err != nil {
		c.refuse(err)
		return
	}
	p.flush() // so that what is asked for is told as it is durable, and nothing is written in between
	question, err := p.core.Routed(remote, ask)
	if err != nil {
		c.refuse(err)
		return
	}
	defer question.Done()
	reply, err := shards.Reply(ctx, question)
	if err != nil {
		c.refuse(err)
		return
	}
	p.feign(ask, reply)
	n.world.Note("answer", n.number, c.remote, nil)
	if n.answering { // it has done what was asked, and the asker does not hear of it
		n.answering = false
		panic(struck{})
	}
	answer := wire.Append(nil, reply)
	p.core.Questions.Charge(remote, len(answer))
	c.say(answer)
}
