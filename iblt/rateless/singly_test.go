package rateless

import "github.com/syncd-io/syncd/internal/keyhash"

// peelSingly is peel cell by cell: a power for each division, a call for each
// look-up.
func (d *Decoder) peelSingly() error {
	var k [1]Index
	var v [1]Checksum
	for d.awake(); len(d.queue) > 0; d.awake() {
		r := &d.round
		d.queue, r.queue = r.queue[:0], d.queue
		first := d.firstSparse()
		for _, at := range r.queue {
			s := &d.cells[at]
			s.first &^= queued
			if !s.single() {
				continue
			}
			if at < first {
				if s.first&waits == 0 {
					s.first |= waits
					d.waiting.push(at)
				}
				continue
			}
			d.work.Tests++
			p := pick{cell: s.cell(), at: at}
			k[0] = Index(keyhash.Mul(p.cell.S2, keyhash.Inv(p.cell.S1)))
			if !d.plausible(&p, k[0]) {
				continue
			}
			if err := d.lookup(k[:], v[:]); err != nil {
				return err
			}
			if err := d.accept(at, k[0], v[0]); err != nil {
				return err
			}
		}
	}
	return nil
}
