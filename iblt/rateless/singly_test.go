package rateless

import "github.com/syncd-io/syncd/internal/keyhash"

// peelSingly is peel cell by cell: a power for each division, a call for each
// look-up.
func (d *Decoder) peelSingly() error {
	var k [1]Index
	var v [1]Checksum
	for head := 0; head < len(d.queue); head++ {
		at := d.queue[head]
		s := &d.cells[at]
		s.queued = false
		if (s.Count+1)&countMask > 2 || s.S1 == 0 || s.S2 == 0 {
			continue
		}
		d.work.Tests++
		p := pick{cell: s.Cell, at: at}
		k[0] = Index(keyhash.Mul(s.S2, keyhash.Inv(s.S1)))
		if !d.plausible(&p, k[0]) {
			continue
		}
		if err := d.lookup(k[:], v[:]); err != nil {
			return err
		}
		if err := d.accept(&p.cell, k[0], v[0]); err != nil {
			return err
		}
	}
	d.queue = d.queue[:0]
	return nil
}
