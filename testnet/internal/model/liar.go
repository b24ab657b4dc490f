package model

import (
	"context"
	"crypto/ed25519"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// boast is up to when a liar says that it holds, and has collected, everything.
var boast = dbadapter.TimestampAt(time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC))

// Lie restarts the node with a program whose greetings are not true.
func (n *Node) Lie() error {
	n.Stop()
	n.old, n.liar = false, true
	return n.Start()
}

// boasting is a frame with a greeting that is not true, if it has one.
func boasting(m any, frame []byte) []byte {
	switch m := m.(type) {
	case *wire.Hello:
		lie := *m
		lie.Greeting.Tau, lie.Greeting.Floor = boast, boast
		return wire.Append(nil, &lie)
	case *wire.Welcome:
		lie := *m
		lie.Greeting.Tau, lie.Greeting.Floor = boast, boast
		return wire.Append(nil, &lie)
	}
	return frame
}

// Backdate writes a record with a version of so long ago, past the node's decisions
// and with its signature, as a modified program could.
func (n *Node) Backdate(r dbadapter.Record, by time.Duration, told Told) {
	n.do(func(p *process) error {
		err := p.backdate(&r, by)
		if err == nil {
			told(0, r.Version, nil)
		}
		return err
	}, func(err error) { told(0, r.Version, err) })
}

func (p *process) backdate(r *dbadapter.Record, by time.Duration) error {
	n := p.node
	writer, err := n.id.Writer()
	if err != nil {
		return err
	}
	r.Version = dbadapter.Version{
		Clock: dbadapter.TimestampAt(n.wall.now().Add(-by)), Writer: writer, Incarnation: p.draw(node.ForIncarnation),
	}
	r.Signature = ed25519.Sign(keyOf(n.number), node.SignedBytes(p.set.Keys.ID, r))
	hashed, err := dbadapter.Hash(p.set.Keys.Hasher, *r)
	if err != nil {
		return err
	}
	_, err = p.store.Apply(context.Background(), []dbadapter.Write{{Record: hashed}})
	return err
}
