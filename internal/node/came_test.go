package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/placement"
)

// A record that comes to a shard when the directory has placed its key elsewhere already, of which no
// host tells any more, has the shard looked through, and so has one that has no entry. One that is where
// the directory says has not, nor has a tombstone.
func TestLooksForWhatComesLate(t *testing.T) {
	const here, elsewhere = placement.Shard(3), placement.Shard(4)
	for key, is := range map[string]struct {
		code  directory.Code
		looks bool
	}{
		"here": {directory.Code(here), false}, "elsewhere": {directory.Code(elsewhere), true}, "nowhere": {directory.Gone, true},
		"shared": {directory.Shared, true}, "tombstone": {directory.Gone, false},
	} {
		t.Run(key, func(t *testing.T) {
			c := newShardCrew(t, []placement.Shard{here})
			ns := c.ns[0]
			d, host := newLocated(t, ns)
			w := ns.NewByWriter(d)
			home, index := ns.ToldAs([]byte(key))
			host.Set(home, index, is.code)
			d.hear(t, host)
			d.now += time.Hour
			c.put(0, here, key)
			if key == "tombstone" {
				must(commit(c.set(0, here).Write(Draft{Record: dbadapter.Record{Key: []byte(key), Deleted: true}})))
			}
			d.now += cameFor - 1
			d.hear(t, host)
			if placeAll(w); w.meetings.shard(here).wanted {
				t.Error("a look is due at once")
			}
			d.now++
			if placeAll(w); w.meetings.shard(here).wanted != is.looks {
				t.Errorf("a look is due: %t; the locator says %+v", !is.looks, w.WhereIs([]byte(key)))
			}
			if w.came.bytes != 0 || len(w.came.keys) != 0 {
				t.Errorf("%d keys of %d bytes are remembered on", len(w.came.keys), w.came.bytes)
			}
		})
	}
}

// A record of which the locator cannot tell is remembered until it can; the shards of those for which there is no
// room are looked through a minute later.
func TestLooksForWhatIsToldLater(t *testing.T) {
	const here, elsewhere = placement.Shard(3), placement.Shard(4)
	c := newShardCrew(t, []placement.Shard{here})
	ns := c.ns[0]
	d, host := newLocated(t, ns)
	home, index := ns.ToldAs([]byte("key"))
	host.Set(home, index, directory.Code(elsewhere))
	w := ns.NewByWriter(d)
	c.put(0, here, "key")
	for range 10 {
		d.now += cameFor
		placeAll(w)
	}
	if l := w.meetings.shard(here); l.wanted || l.again != 0 || len(w.came.keys) != 1 {
		t.Errorf("a look is due: %t, in %s; %d keys are remembered", l.wanted, l.again-d.now, len(w.came.keys))
	}
	d.hear(t, host)
	d.now += cameFor
	if placeAll(w); !w.meetings.shard(here).wanted || len(w.came.keys) != 0 {
		t.Errorf("a look is due: %t; %d keys are remembered", w.meetings.shard(here).wanted, len(w.came.keys))
	}
	d, _ = newLocated(t, ns) // a locator that has heard nothing
	w = ns.NewByWriter(d)
	for range cameMost {
		w.came.note(here, []byte("key"), d.now-cameFor, cameMost)
	}
	placeAll(w)
	if l := w.meetings.shard(here); l.wanted || l.again != d.now+meetingsAgain || len(w.came.keys) != cameMost/2 {
		t.Errorf("a look is due: %t, in %s; %d keys are remembered", l.wanted, l.again-d.now, len(w.came.keys))
	}
}

// A record that this node has written, and that a deletion at another host has come before, has the shard looked through once the
// locator goes by what the hosts tell, and not by what the node has written.
func TestLooksForWhatItHasWritten(t *testing.T) {
	const here = placement.Shard(3)
	c := newShardCrew(t, []placement.Shard{here})
	ns := c.ns[0]
	d, host := newLocated(t, ns)
	home, index := ns.ToldAs([]byte("key"))
	host.Set(home, index, directory.Gone)
	w := ns.NewByWriter(d)
	d.hear(t, host)
	d.now += time.Hour
	c.put(0, here, "key")
	d.locator.Wrote(home, index, here, d.now)
	for until := d.now + 4*directory.Fresh; d.now < until && !w.meetings.shard(here).wanted; {
		d.now += cameFor
		d.hear(t, host)
		placeAll(w)
	}
	if !w.meetings.shard(here).wanted || len(w.came.keys) != 0 {
		t.Errorf("no look is due; the locator says %+v; %d keys are remembered", w.WhereIs([]byte("key")), len(w.came.keys))
	}
}

// What comes faster than it is remembered has the shard looked through.
func TestLooksForWhatIsNotRemembered(t *testing.T) {
	const here = placement.Shard(3)
	c := newShardCrew(t, []placement.Shard{here})
	d, _ := newLocated(t, c.ns[0])
	w := c.ns[0].NewByWriter(d)
	change := func(i int) []dbadapter.Change {
		return []dbadapter.Change{{New: 1, Keys: [][]byte{fmt.Appendf(nil, "key %d", i)}}}
	}
	for i := range cameMost {
		w.cameTo(here, change(i))
	}
	if w.meetings.shard(here).wanted {
		t.Error("a look is due before there is no room")
	}
	if w.cameTo(here, change(cameMost)); len(w.came.keys) != cameMost || !w.meetings.shard(here).wanted {
		t.Errorf("%d keys are remembered, and a look is due: %t", len(w.came.keys), w.meetings.shard(here).wanted)
	}
}

func placeAll(w *ByWriter) {
	held := map[placement.Shard]*Set{}
	for _, set := range w.ns.Sets() {
		held[set.shard] = set
	}
	w.placeCame(held)
}
