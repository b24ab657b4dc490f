package model

import (
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/keyhash"
)

// ShortCheck has the decoder take a sum of several differences for one. It does so in
// the next sync that the node begins with another and whose cells allow it.
func (n *Node) ShortCheck(remote int) { n.short[remote] = true }

// shortCells is how many of the first cells are looked at: what a sync of small sets
// opens with.
const shortCells = 64

// shortStray finds the first cell of a sync that holds several differences. It makes that
// look like one that holds a single pair, which neither side holds. By chance a cell
// looks so in one test of some thousands; what the decoder then does is the same. nil: no
// cell holds several.
func (p *process) shortStray(there *Node, number uint64) *stray {
	q := there.process
	if q == nil || q.ns == nil {
		return nil
	}
	ours, theirs := p.compute().Cells, q.compute().Cells
	for j := 1; j < shortCells; j++ {
		a, b := &ours[j], &theirs[j]
		left := rateless.Cell{S1: keyhash.Sub(a.S1, b.S1), S2: keyhash.Sub(a.S2, b.S2), Count: (a.Count - b.Count) % (1 << 4)}
		if left.IsZero() || (left.Count+1)%(1<<4) <= 2 {
			continue
		}
		for draw := range uint64(1000) {
			one := rateless.NewSketch(p.set.Keys.Cells, j+1)
			one.Add(p.node.drawPair(number, draw+2))
			alone := one.Prefix(j + 1)[j]
			if alone.IsZero() {
				continue // it is not of this cell
			}
			cells := make([]rateless.Cell, j+1)
			cells[j] = rateless.Cell{
				S1: keyhash.Sub(alone.S1, left.S1), S2: keyhash.Sub(alone.S2, left.S2),
				Count: (alone.Count - left.Count) % (1 << 4),
			}
			return &stray{cells: cells}
		}
	}
	return nil
}
