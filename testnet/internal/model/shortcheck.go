package model

import (
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/keyhash"
)

// ShortCheck has the decoder take a sum of several differences for one, in the next sync
// that the node begins with another and whose cells allow it.
func (n *Node) ShortCheck(remote int) { n.short[remote] = true }

// shortCells is how many of the first cells are looked at: what a sync of small sets
// opens with.
const shortCells = 64

// shortStray finds the first cell of a sync that holds several differences and, but for
// its check, looks like one that holds a single pair: count 1 or −1, and an index that
// belongs to this cell. Its check becomes that of the pair. By chance that is one check
// of 2^26; what the decoder then does is the same. nil: no cell is like that.
func (p *process) shortStray(there *Node) *stray {
	q := there.process
	if q == nil || q.ns == nil {
		return nil
	}
	ours, theirs := p.compute().cells, q.compute().cells
	for j := range shortCells {
		a, b := &ours[j], &theirs[j]
		s1, s2 := keyhash.Sub(a.S1, b.S1), keyhash.Sub(a.S2, b.S2)
		check, count := (a.Check-b.Check)%(1<<26), (a.Count-b.Count)%(1<<6)
		if s1 == 0 || s2 == 0 || count != 1 && count != 1<<6-1 {
			continue
		}
		k := keyhash.Mul(s2, keyhash.Inv(s1))
		v := s1
		if count != 1 {
			v = keyhash.Sub(0, s1)
		}
		one := rateless.NewSketch(p.set.Keys.Cells, j+1)
		one.Add(rateless.Pair{Index: rateless.Index(k), Checksum: rateless.Checksum(v)})
		alone := one.Prefix(j + 1)[j]
		right := alone.Check
		if count != 1 {
			right = -alone.Check % (1 << 26)
		}
		if alone.Count != 1 || right == check {
			continue // it is not of this cell, or is there
		}
		cells := make([]rateless.Cell, j+1)
		cells[j].Check = (right - check) % (1 << 26)
		return &stray{cells: cells}
	}
	return nil
}
