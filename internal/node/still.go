package node

import (
	"bytes"
	"slices"

	"github.com/syncd-io/syncd/internal/membership"
)

// Still runs fn while no namespace's state changes, so that fn can copy the states
// and the stores as of one moment. Records may be written meanwhile. fn must not
// change a state.
func (n *Node) Still(fn func() error) error {
	n.mu.RLock()
	all := make([]*Namespace, 0, len(n.byID))
	for _, ns := range n.byID {
		all = append(all, ns)
	}
	n.mu.RUnlock()
	// Sorted: two callers take the locks in one order.
	slices.SortFunc(all, func(a, b *Namespace) int { return bytes.Compare(a.id[:], b.id[:]) })
	return still(all, fn)
}

// still runs fn while the list of members and the control namespace stay as they are.
func (ns *Namespace) still(fn func()) {
	_ = ns.Hold(func(membership.Held) error { fn(); return nil })
}

func still(all []*Namespace, fn func() error) error {
	if len(all) == 0 {
		return fn()
	}
	return all[0].Hold(func(membership.Held) error {
		all[0].saving.Lock()
		defer all[0].saving.Unlock()
		return still(all[1:], fn)
	})
}
