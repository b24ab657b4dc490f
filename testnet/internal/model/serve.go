package model

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// Replay sends a node the frames once more that an initiator sent it in its
// last session.
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

// accept answers a stream.
func (n *Node) accept(s *sim.Stream, from int, m *meeting) bool {
	p := n.process
	if p == nil {
		return false
	}
	var x *session
	s.Receive = func(frame []byte) {
		p.now(func() {
			if x == nil {
				x = p.serve(s, from, m, frame)
			} else {
				x.take(frame)
			}
		})
	}
	s.Broken = func(err error) {
		p.now(func() {
			if x != nil {
				x.broke(err)
			}
		})
	}
	return true
}

// serve answers a Hello. It gives nil where there will be no session.
func (p *process) serve(s *sim.Stream, from int, m *meeting, frame []byte) *session {
	n := p.node
	refuse := func(code wire.Code, err error) *session {
		n.world.Note("refuse", n.id, from, []byte{byte(code)})
		n.cluster.Watch.Refused(n.id, err)
		s.Send(wire.Append(nil, &wire.Refuse{Code: code, Version: n.version()}))
		s.Close()
		return nil
	}
	if n.old {
		frame = translated(frame)
	}
	first, size, err := wire.Read(bytes.NewReader(frame))
	if err != nil {
		return refuse(wire.CodeProtocol, fmt.Errorf("%w: %w", reconcile.ErrProtocol, err))
	}
	hello, ok := first.(*wire.Hello)
	if !ok {
		return refuse(wire.CodeProtocol, reconcile.ErrProtocol)
	}
	switch {
	case reconcile.CheckVersion(hello) != nil:
		return refuse(wire.CodeVersion, reconcile.ErrVersion)
	case hello.Namespace != n.cluster.keys.ID:
		return refuse(wire.CodeDenied, reconcile.ErrDenied)
	case n.id < from && p.calls[from] > 0 && !hello.DryRun,
		p.incoming[from] >= sessionsPerPeer, p.serving() >= sessions:
		return refuse(wire.CodeBusy, reconcile.ErrBusy)
	}
	x, err := p.begin(from, 1, m, Ask{hello.Direction, hello.Method, hello.DryRun, hello.Prefix})
	if err != nil {
		return refuse(wire.CodeBusy, err)
	}
	p.incoming[from]++
	x.listen(s)
	x.core = reconcile.Respond(func(*wire.Hello) (reconcile.Replica, error) { return x.replica, nil }, x.options())
	x.core.Next() // it waits for the Hello, which is here
	x.core.Deliver(hello, size)
	x.pump()
	return x
}

func (n *Node) version() byte {
	if n.old {
		return oldVersion
	}
	return wire.Version
}

// translated is a Hello as an older program reads it: of its own version, if it
// comes from one like it.
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

func (p *process) serving() (n int) {
	for _, x := range p.sessions {
		n += x.side
	}
	return n
}
