package node

import "github.com/syncd-io/syncd/reconcile/wire"

// answerStatus tells how this node is: what it knows of the records, and what its driver
// does of the rest.
func (set *Set) answerStatus() *wire.StatusAnswer {
	a := &wire.StatusAnswer{Sum: set.sum(), Newest: set.Store.Latest()}
	if set.ns.describe != nil {
		set.ns.describe(a)
	}
	return a
}

// Recovers reports whether the node may lack what it, or the members, once held of the set.
func (set *Set) Recovers() bool { return set.gc.Recovering() }

// Status is what this node would answer a member that asks how it is.
func (set *Set) Status() *wire.StatusAnswer { return set.answerStatus() }
