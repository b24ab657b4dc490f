package directory

import (
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
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
			if a := d.node.Locate(0, 5000, d.now); a.Where == Nowhere {
				t.Errorf("%s: a key that the further host has: %+v", name, a)
			}
			if a := d.node.Locate(0, hidden, d.now); a.Sure {
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

// What another host tells late, of an earlier write of a key and of its deletion, makes the key not nowhere
// where it has just been written anew.
func TestOldNewsHideNoWrite(t *testing.T) {
	const key = hidden + 5000
	d := newDuo(t, []roster.ID{liar, honest}) // and the liar does not lie here
	d.rounds(40, d.order...)
	d.node.Wrote(0, key, 2, d.now)
	d.hosts[honest].Set(0, key, 2) // it has not told of that yet
	for _, is := range []Code{2, Gone} {
		d.hosts[liar].Set(0, key, is)
		d.rounds(1, liar)
	}
	if a := d.node.Locate(0, key, d.now); a.Where != OneOf || a.Shard != 2 {
		t.Errorf("within a second of the write: %+v", a)
	}
}

// A host that has failed rests the longer the oftener it has, and begins anew after a time without.
func TestFailuresLapse(t *testing.T) {
	h := &host{}
	for i := range 20 {
		h.fails(time.Duration(i) * time.Minute)
	}
	if got := h.failed(time.Hour); got != 20 {
		t.Errorf("%d failures count, of 20", got)
	}
	if got := h.failed(20*time.Minute + forgiven); got != 0 {
		t.Errorf("an hour later %d count", got)
	}
	h.fails(24 * time.Hour)
	if got := h.failed(24 * time.Hour); got != 1 {
		t.Errorf("one a day counts as %d", got)
	}
}

// A host that told of a set before this node knew it for one of its hosts is asked for the sums of all sets.
func TestHostOfAFurtherSet(t *testing.T) {
	eachOrder(t, func(t *testing.T, d *duo) {
		for _, id := range d.order {
			d.hosts[id].Open(1, sortedRows(map[dbadapter.Index]Code{7: 2}))
		}
		d.run()
		d.node.SetHosts(testLayout, map[placement.Shard][]roster.ID{1: d.order})
		d.run()
		if a := d.node.Locate(1, 7, d.now); a.Where != In || a.Shard != 2 {
			t.Errorf("%+v", a)
		}
	})
}
