package node

import "github.com/syncd-io/syncd/reconcile/wire"

// answerStatus tells how this node is: what it knows of the records, and what its driver
// does of the rest.
func (ns *Namespace) answerStatus() *wire.StatusAnswer {
	a := &wire.StatusAnswer{Sum: ns.sum(), Newest: ns.Store.Latest()}
	if ns.describe != nil {
		ns.describe(a)
	}
	return a
}

// Status is what this node would answer a member that asks how it is.
func (ns *Namespace) Status() *wire.StatusAnswer { return ns.answerStatus() }
