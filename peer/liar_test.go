package peer

import (
	"bufio"
	"io"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/internal/routing"
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
	liar.host.SetStreamHandler(routing.Protocol, func(s network.Stream) {
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
			reconcile.ProveReply(proofs, []byte(liar.ID()), []byte(asker.node.ID()), ask, reply)
			if _, err := s.Write(wire.Append(nil, reply)); err != nil {
				return
			}
		}
	})
}
