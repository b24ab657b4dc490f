package node

import (
	"bytes"
	"slices"
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
	for _, ns := range all {
		ns.updating.Lock()
		defer ns.updating.Unlock()
		ns.saving.Lock()
		defer ns.saving.Unlock()
	}
	return fn()
}
