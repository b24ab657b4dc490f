package model

import (
	"bytes"
	"context"
	"fmt"
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
		return c.nodes[to].accept(s, from, &meeting{replayed: true})
	})
	for _, frame := range t.frames {
		s.Send(frame)
	}
}

// greeted takes a stream of a peer whose first frame may be late. It passes that to
// first, those that follow to next, and its end to broken. A peer for which there is no
// place is refused.
func (p *process) greeted(s *sim.Stream, from int, first, next func(frame []byte), broken func(error)) {
	remote := p.node.cluster.nodes[from].id
	leave, ok := p.core.Sessions.Greet(remote, p.core.IsMember(remote))
	if !ok {
		p.refuse(s, from, reconcile.ErrBusy)
		return
	}
	greeted := false
	greet := func() {
		if !greeted {
			greeted = true
			leave()
		}
	}
	silent := p.after(helloTimeout, func() {
		greet()
		s.Reset()
	})
	s.Receive = func(frame []byte) {
		p.now(func() {
			if greeted {
				next(frame)
				return
			}
			silent.stop()
			greet()
			first(frame)
		})
	}
	s.Broken = func(err error) {
		p.now(func() {
			silent.stop()
			greet()
			broken(err)
		})
	}
}

// accept answers a stream.
func (n *Node) accept(s *sim.Stream, from int, m *meeting) bool {
	p := n.process
	if p == nil {
		return false
	}
	var x *session
	p.greeted(s, from, func(frame []byte) {
		x = p.serve(s, from, m, frame)
	}, func(frame []byte) {
		if x != nil {
			x.take(frame)
		}
	}, func(err error) {
		if x != nil {
			x.broke(err)
		}
	})
	return true
}

// refuse tells a peer why no session begins.
func (p *process) refuse(s *sim.Stream, from int, err error) {
	n := p.node
	refusal := reconcile.Refusal(err)
	refusal.Version = n.version()
	n.world.Note("refuse", n.number, from, []byte{byte(refusal.Code)})
	n.cluster.Watch.Refused(n.number, err)
	s.Send(wire.Append(nil, refusal))
	s.Close()
}

// serve answers a Hello. It returns nil if no session begins.
func (p *process) serve(s *sim.Stream, from int, m *meeting, frame []byte) *session {
	n := p.node
	if n.old {
		frame = translated(frame)
	}
	first, size, err := wire.Read(bytes.NewReader(frame))
	hello, ok := first.(*wire.Hello)
	if err != nil || !ok {
		p.refuse(s, from, fmt.Errorf("%w: a first frame that is not a Hello: %w", reconcile.ErrProtocol, err))
		return nil
	}
	remote := n.cluster.nodes[from].id
	part, done, err := p.core.Answer(remote, hello)
	if err != nil {
		p.refuse(s, from, err)
		return nil
	}
	sh := p.served(part)
	if sh == nil { // it was left since just now
		done()
		p.refuse(s, from, reconcile.ErrBusy)
		return nil
	}
	x, err := p.begin(sh, from, 1, m, part.AskOf(hello), func(x *session) (*node.Conversation, error) {
		return part.Respond(context.Background(), remote, hello, size, x.enter), nil
	})
	if err != nil {
		done()
		p.refuse(s, from, err)
		return nil
	}
	x.done = done
	x.listen(s)
	x.pump()
	return x
}

// served is what a session about a part is of.
func (p *process) served(part *node.Part) *shard {
	if part.Set() == nil && p.cut() {
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
