package node

import (
	"time"

	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// View is a set as a node sees it that may not hold it: what is needed to ask those that do.
type View struct{ set *Set }

// View is one of the namespace's sets.
func (ns *Namespace) View(number placement.Shard) View { return View{ns.view(number)} }

// Ask is Set.Ask. The greeting promises nothing of the set.
func (v View) Ask(remote ID, patience time.Duration, q wire.Question) (*wire.Ask, error) {
	return v.set.begin(remote, v.set.ns.routedGreeting(), patience, q)
}

// Lists is what a member that has the same list, and goes by the same row, greets with beside its answer.
func (v View) Lists() [16]byte { return v.set.lists() }

// Answered is Set.Answered.
func (v View) Answered(remote ID, ask *wire.Ask, m wire.Message) (*wire.Reply, error) {
	return v.set.Answered(remote, ask, m)
}

// begin begins a question to a peer.
func (set *Set) begin(remote ID, g wire.Greeting, patience time.Duration, q wire.Question) (*wire.Ask, error) {
	if err := set.ns.MayCall(remote); err != nil {
		return nil, err
	}
	m := &wire.Ask{Greeting: g, Patience: uint64(min(max(0, patience.Milliseconds()), wire.MaxPatience)), Question: q}
	set.ns.node.random(m.Nonce[:], ForNonce)
	reconcile.ProveAsk(set.Keys, []byte(set.ns.node.ID), []byte(remote), m)
	return m, nil
}

// Greeting is what the peer says of itself beside its answer.
func (a *Asker) Greeting(remote ID, ask *wire.Ask, m wire.Message) (wire.Greeting, error) {
	reply, err := a.reply(remote, ask, m)
	if err != nil {
		return wire.Greeting{}, err
	}
	return reply.Greeting, nil
}
