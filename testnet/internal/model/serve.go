package model

import (
	"context"
	"slices"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// Replay sends a node once more the frames that an initiator sent it in its last
// session.
func (c *Cluster) Replay(from, to int) {
	t := c.last[[2]int{from, to}]
	if t == nil {
		return
	}
	s := c.Net.Dial(from, to, func(s *sim.Stream) bool {
		return c.nodes[to].accept(s, from, (&meeting{replayed: true}).serve)
	})
	for _, frame := range t.frames {
		s.Send(frame)
	}
}

// serve answers a sync that a peer begins.
func (m *meeting) serve(ctx context.Context, c *conn) {
	hello, size, ok := greeting[*wire.Hello](ctx, c)
	if !ok {
		return
	}
	p := c.process
	remote := p.node.cluster.nodes[c.remote].id
	part, done, err := p.core.Answer(remote, hello)
	if err != nil {
		c.refuse(err)
		return
	}
	sh := p.served(part)
	if sh == nil { // it was left since just now
		done()
		c.refuse(reconcile.ErrBusy)
		return
	}
	x, err := p.begin(sh, c.remote, 1, m, part.AskOf(hello), func(x *session) (*node.Conversation, error) {
		return part.Respond(context.Background(), remote, hello, size, x.enter), nil
	})
	if err != nil {
		done()
		c.refuse(err)
		return
	}
	x.done = done
	_, _ = x.run(ctx, c) // the watcher has its end
}

// served is what a session about a part is of.
func (p *process) served(part *node.Part) *shard {
	if part.Set() == nil {
		return p.bare()
	}
	return p.of(part.Set())
}

func (n *Node) version() byte {
	if n.old {
		return oldVersion
	}
	return wire.Version
}

// translated is a Hello as an older program reads it: a Hello of another such
// program has its own version.
func translated(frame []byte) []byte {
	frame = slices.Clone(frame)
	if at := versionAt(frame); at < len(frame) {
		if frame[at] == oldVersion {
			frame[at] = wire.Version
		} else {
			frame[at] = 0xff
		}
	}
	return frame
}

// versionAt is where the version stands in a Hello: behind the length of the
// frame and the kind of the message.
func versionAt(frame []byte) int {
	at := 0
	for at < len(frame) && frame[at]&0x80 != 0 {
		at++
	}
	return at + 2
}
