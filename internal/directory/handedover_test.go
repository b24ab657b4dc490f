package directory

import (
	"testing"

	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
)

// A host of before (liar, here honest) alone has a key; it hands the set over to the host, drops it and
// says so. The node hears that before it hears from the host what has come to it.
func TestTellerLeavesBeforeHostIsHeard(t *testing.T) {
	for _, order := range [][]roster.ID{{liar, honest}, {honest, liar}} {
		for _, who := range []struct{ stays, leaves roster.ID }{{honest, liar}, {liar, honest}} {
			const key = hidden + 5000
			d := newDuo(t, order)
			d.rounds(40, d.order...)
			d.hosts[who.leaves].Set(0, key, 2) // held by the host of before alone
			d.rounds(40, d.order...)           // 20 s, all told
			a := d.node.Locate(0, key, d.now)
			t.Logf("before: %+v", a)
			if a.Where == Nowhere {
				t.Fatal("?")
			}
			// now: leaves hands over to stays, which holds the key from now on
			d.hosts[who.stays].Set(0, key, 2)
			// stays is not asked again yet (it is slow, or the link is cut); leaves has dropped the set and says so
			d.node.SetHosts(testLayout, map[placement.Shard][]roster.ID{0: {who.stays}})
			a = d.node.Locate(0, key, d.now)
			t.Logf("order %v, %v leaves: %+v", order, who.leaves, a)
			if a.Where == Nowhere {
				t.Errorf("order %v, %v leaves: a key that has been held for 20 s, and that this node has heard of, is nowhere for sure: %+v", order, who.leaves, a)
			}
		}
	}
}

// A poll of a host that was sent before it had taken a set over, from the one that told of it (liar, which is
// honest here), and is answered when it has become a teller, does not tell what it has taken over.
func TestTellerJoinsAsAnotherLeaves(t *testing.T) {
	d := newDuo(t, []roster.ID{liar})
	const key = hidden + 5000
	h := d.hosts[honest]
	d.node.SetHosts(testLayout, map[placement.Shard][]roster.ID{0: {liar}, 1: {honest}})
	d.rounds(20, liar) // liar was heard; honest was not yet
	p := d.node.Poll(honest)
	n := h.News(p)               // on its way: it says what set 0 is there, without the key
	d.hosts[liar].Set(0, key, 2) // (acknowledged by liar long ago, of which the node has not heard)
	h.Set(0, key, 2)             // handed over
	d.node.SetHosts(testLayout, map[placement.Shard][]roster.ID{0: {honest}, 1: {honest}})
	if err := d.node.News(honest, p, n, d.now); err != nil {
		t.Fatal(err)
	}
	for run := d.node.Work(); run != nil; run = d.node.Work() {
		if err := run(); err != nil {
			t.Fatal(err)
		}
	}
	if a := d.node.Locate(0, key, d.now); a.Where == Nowhere {
		t.Errorf("%+v", a)
	}
}
