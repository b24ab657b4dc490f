package peer

import (
	"bufio"
	"io"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// lies has the liar answer each routed request of asker with what answer returns, proved as
// a member proves it; where that is nil it keeps still until the asker gives up.
func (c *shardCluster) lies(liar *Node, asker *Namespace, answer func(*wire.Ask) wire.Answering) {
	c.liesBy(liar, asker, wire.Greeting{}, answer)
}

// liesBy is lies with a greeting.
func (c *shardCluster) liesBy(liar *Node, asker *Namespace, greeting wire.Greeting, answer func(*wire.Ask) wire.Answering) {
	proofs := reconcile.Keys{Secret: c.secret, ID: asker.ID()}
	liar.host.SetStreamHandler(routeProtocol, func(s network.Stream) {
		defer s.Reset()
		for in := bufio.NewReader(s); ; {
			m, _, err := wire.Read(in)
			ask, ok := m.(*wire.Ask)
			if err != nil || !ok {
				return
			}
			lie := answer(ask)
			if lie == nil {
				_, _ = io.Copy(io.Discard, in)
				return
			}
			reply := &wire.Reply{Answer: lie, Greeting: greeting}
			if h, ok := lie.(honestly); ok {
				reply.Answer, reply.Greeting = h.Answering, h.greeting
			}
			reconcile.ProveReply(proofs, []byte(liar.ID()), []byte(asker.node.ID()), ask, reply)
			if _, err := s.Write(wire.Append(nil, reply)); err != nil {
				return
			}
		}
	})
}

// hears has a host answer what it is asked by anyone, once hear has returned; where that is false it keeps still until the
// asker gives up.
func (c *shardCluster) hears(n *Node, hear func(by ID, ask *wire.Ask) bool) {
	c.answers(n, hear, func(ID, *wire.Ask, *wire.Reply) {})
}

// answers is hears, with what is done between an answer and its sending.
func (c *shardCluster) answers(n *Node, hear func(by ID, ask *wire.Ask) bool, sends func(by ID, ask *wire.Ask, reply *wire.Reply)) {
	n.host.SetStreamHandler(routeProtocol, func(s network.Stream) {
		defer s.Reset()
		by := s.Conn().RemotePeer()
		for in := bufio.NewReader(s); ; {
			m, _, err := wire.Read(in)
			ask, ok := m.(*wire.Ask)
			if err != nil || !ok {
				return
			}
			if !hear(by, ask) {
				_, _ = io.Copy(io.Discard, in)
				return
			}
			reply, err := n.answerRouted(by, ask)
			if err != nil {
				return
			}
			sends(by, ask, reply)
			if _, err := s.Write(wire.Append(nil, reply)); err != nil {
				return
			}
		}
	})
}
