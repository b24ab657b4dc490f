package syncing

import (
	"slices"
	"sync"

	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/reconcile"
)

// Openings remembers how many cells the last syncs with each peer could have opened
// with. So the next one neither sends many in vain nor needs a second round trip
// for the usual number of differences.
type Openings struct {
	mu sync.Mutex
	of map[roster.ID][Remembered]int // oldest first
}

// Cells is how many cells a Hello to the peer should carry.
func (o *Openings) Cells(id roster.ID) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Max(o.last(id))
}

// last is what is Remembered of a peer; the default, where that is nothing.
func (o *Openings) last(id roster.ID) []int {
	if last, ok := o.of[id]; ok {
		return last[:]
	}
	return slices.Repeat([]int{reconcile.FirstCells}, Remembered)
}

// Note remembers the number of differences of one more sync.
func (o *Openings) Note(id roster.ID, differences int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = map[roster.ID][Remembered]int{}
	}
	o.of[id] = [Remembered]int(append(o.last(id)[1:Remembered:Remembered], reconcile.CellsToOpen(differences)))
}
