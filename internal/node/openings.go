package node

import (
	"slices"
	"sync"

	"github.com/syncd-io/syncd/reconcile"
)

// openings remembers how many cells the last syncs with each peer could have opened
// with. So the next one neither sends many in vain nor needs a second round trip
// for the usual number of differences.
type openings struct {
	mu sync.Mutex
	of map[ID][remembered]int // oldest first
}

// cells is how many cells a Hello to the peer should carry.
func (o *openings) cells(id ID) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Max(o.last(id))
}

// last is what is remembered of a peer; the default, where that is nothing.
func (o *openings) last(id ID) []int {
	if last, ok := o.of[id]; ok {
		return last[:]
	}
	return slices.Repeat([]int{reconcile.FirstCells}, remembered)
}

// note remembers the number of differences of one more sync.
func (o *openings) note(id ID, differences int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = map[ID][remembered]int{}
	}
	o.of[id] = [remembered]int(append(o.last(id)[1:remembered:remembered], reconcile.CellsToOpen(differences)))
}

// opening is how many cells the Hello of a conversation carries. It is none to a
// peer that pushes and was last proved to hold what this node holds. What it has
// taken since it would have pushed.
func (c *Conversation) opening() int {
	if !c.ask.Control && c.part.ns.node.Push.On && c.part.set.equal.has(c.remote, c.opened) {
		return reconcile.NoCells
	}
	return c.part.openings.cells(c.remote)
}
