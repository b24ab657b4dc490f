package directory

import (
	"testing"

	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
)

// The hosts of one layout are not taken for those of another, whichever of the two a node is told
// first: a key that only a further host has is not nowhere.
func TestHostsOfAnotherLayout(t *testing.T) {
	const further = roster.ID("a further host")
	for name, tell := range map[string]func(*Locator, []roster.ID){
		"the layout first": func(l *Locator, _ []roster.ID) {
			l.SetHosts(8, nil)
		},
		"another set first": func(l *Locator, hosts []roster.ID) {
			l.SetHosts(8, map[placement.Shard][]roster.ID{1: hosts})
		},
	} {
		eachOrder(t, func(t *testing.T, d *duo) {
			d.run()
			d.hosts[further] = newHost(9)
			d.hosts[further].Set(0, 5000, 2)
			for _, h := range d.hosts {
				h.SetLayout(8)
			}
			all := []roster.ID{liar, honest, further}
			tell(d.node, all)
			d.rounds(5, d.order...)
			if a := d.node.Locate(0, 5000, d.now); a.Where == Nowhere || a.heard {
				t.Errorf("%s: a key that the further host has: %+v", name, a)
			}
			if a := d.node.Locate(0, hidden, d.now); a.Current || a.Decided() {
				t.Errorf("%s: where the further host may know better: %+v", name, a)
			}
			d.node.SetHosts(8, map[placement.Shard][]roster.ID{0: all})
			d.rounds(5, all...)
			if a := d.node.Locate(0, 5000, d.now); a.Where == Nowhere {
				t.Errorf("%s, with it: %+v", name, a)
			}
			if a := d.node.Locate(0, 5001, d.now); a.Where == Nowhere {
				t.Errorf("%s, with it, which is apart: %+v", name, a)
			}
			for _, id := range all {
				d.hosts[id].Set(0, 5000, 2)
			}
			d.rounds(5, all...)
			if a := d.node.Locate(0, 5000, d.now); a.Where != In || a.Shard != 2 {
				t.Errorf("%s, once all have it: %+v", name, a)
			}
			if a := d.node.Locate(0, 5001, d.now); a.Where != Nowhere {
				t.Errorf("%s, once all have the same: %+v", name, a)
			}
		})
	}
}

// What hosts say differently is known before the first base is built, too.
func TestHostsDifferBeforeABase(t *testing.T) {
	eachOrder(t, func(t *testing.T, d *duo) {
		d.idle = true
		d.rounds(5, d.order...)
		if a := d.node.Locate(0, hidden, d.now); !a.Decided() || a.Where != Unknown {
			t.Errorf("both hosts say the same: %+v", a)
		}
		d.hosts[honest].Set(0, hidden, 2)
		d.rounds(2, d.order...)
		if a := d.node.Locate(0, hidden, d.now); a.Decided() || !a.Answering {
			t.Errorf("two hosts name different shards: %+v", a)
		}
	})
}
