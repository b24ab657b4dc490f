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

// Of keys that have shared an index, one that is left says nothing of the others: one of those may have
// a record that has lost, in the shard of the one that is left. And the hosts of the shard that the index
// led to before look for such records.
func TestSharedOnce(t *testing.T) {
	eachOrder(t, func(t *testing.T, d *duo) {
		var met []placement.Shard
		d.node.Met = func(s placement.Shard) { met = append(met, s) }
		say := func(is Code) {
			for _, h := range d.hosts {
				h.Set(0, 5000, is)
			}
			d.rounds(5, d.order...)
		}
		d.run()
		for _, h := range d.hosts { // they are to agree
			h.Open(0, sortedRows(nil))
		}
		say(2)
		if a := d.node.Locate(0, 5000, d.now); a.Where != In || !a.Decided() {
			t.Errorf("one key: %+v", a)
		}
		say(Shared)
		if len(met) == 0 || met[0] != 2 {
			t.Errorf("the shards that are to be looked through: %v", met)
		}
		for _, is := range []Code{2, Gone, 3} {
			say(is)
			if a := d.node.Locate(0, 5000, d.now); a.Where != Unknown || !a.Shared || !a.Answering || a.Decided() {
				t.Errorf("two keys, of which %d is said: %+v", is, a)
			}
		}
	})
}
