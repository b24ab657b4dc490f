package directory

import (
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
)

// Strangers that the base places in a shard by chance are nowhere once they were verified, however
// many there are, and the keys are where they were: also those that came since the copy was written,
// and a stranger that a host tells of afterwards.
func TestStrangersAreToldFromKeys(t *testing.T) {
	const strangers = dbadapter.Index(1 << 16)
	w := newWorld(t, rand.Uint64())
	for range 400 {
		w.write()
	}
	w.quiet()
	w.node.leastOver, w.node.leastExact, w.node.maxSet = 1000, 0, 1000
	for range 20 { // over the copies on disk, and in the base
		w.write()
	}
	w.quiet()
	w.node.leastExact = 1000
	type place struct {
		home  placement.Shard
		index dbadapter.Index
	}
	answers := func() (all map[place]Answer, by []place) { // by: those of strangers that have a shard by chance
		all = map[place]Answer{}
		for home := range placement.Shard(simShards) {
			for index := dbadapter.Index(1); index <= strangers; index++ {
				at := place{home, index}
				all[at] = w.node.Locate(home, index, w.now)
				if e, held := w.hosts[w.of[home][0]].sets[home][index]; (!held || e.code == Gone) && all[at].Where == In {
					by = append(by, at)
				}
			}
		}
		return all, by
	}
	_, by := answers()
	for _, is := range []Code{1, Gone} { // they come and go
		for _, at := range by {
			w.version++
			for _, id := range w.of[at.home] {
				w.put(w.hosts[id], at.home, at.index, simEntry{version: w.version, code: is})
			}
		}
		if is == Gone {
			w.node.leastExact = 0 // a new base
		}
		w.quiet()
	}
	w.node.leastExact = 1000
	was, by := answers()
	if len(by) < 10 { // some 60 are expected
		t.Fatalf("%d strangers have a shard by chance: this test shows nothing", len(by))
	}
	came := by[0] // while a copy is read, and the base has named its shard before
	by = by[1:]
	w.disk.step = func() {
		w.disk.step = func() {}
		for _, id := range w.of[came.home] {
			w.version++
			w.put(w.hosts[id], came.home, came.index, simEntry{version: w.version, code: Code(was[came].Shard)})
		}
		w.hear()
	}
	wrong, err := w.node.Verify(w.guesses(strangers))
	if err != nil || wrong != len(by) {
		t.Fatalf("%d strangers found, not %d: %v", wrong, len(by), err)
	}
	w.quiet() // what came is in doubt until the copy was read
	for _, at := range by {
		if a := w.node.Locate(at.home, at.index, w.now); a.Where != Nowhere {
			t.Fatalf("stranger %d of set %d: %+v", at.index, at.home, a)
		}
		delete(was, at)
	}
	for at, a := range was {
		if now := w.node.Locate(at.home, at.index, w.now); now.Where != a.Where || now.Shard != a.Shard {
			t.Fatalf("index %d of set %d was %+v, and is %+v", at.index, at.home, a, now)
		}
	}
	if wrong, err = w.node.Verify(w.guesses(strangers)); wrong != 0 || err != nil {
		t.Fatalf("%d were found twice: %v", wrong, err)
	}
	at := by[0]
	w.version++
	for _, id := range w.of[at.home] {
		w.put(w.hosts[id], at.home, at.index, simEntry{version: w.version, code: 3})
	}
	w.quiet()
	if a := w.node.Locate(at.home, at.index, w.now); a.Where != In || a.Shard != 3 || !a.Sure {
		t.Fatalf("it is a key now: %+v", a)
	}
}

// Of two records in one shard whose keys share an index, of which one entry tells, one has none: the
// index is shared from then on, whichever it is.
func TestOneEntryForTwoKeys(t *testing.T) {
	w := newWorld(t, rand.Uint64())
	for index := dbadapter.Index(1); index <= 2; index++ {
		for _, id := range w.of[0] {
			w.version++
			w.put(w.hosts[id], 0, index, simEntry{version: w.version, code: 2})
		}
	}
	w.quiet()
	g := &Guesses{}
	for _, index := range []dbadapter.Index{1, 2, 1} {
		g.Add(0, index)
	}
	if wrong, err := w.node.Verify(g); wrong != 1 || err != nil {
		t.Fatalf("%d: %v", wrong, err)
	}
	if a := w.node.Locate(0, 1, w.now); a.Where != Unknown || !a.Shared || !a.Answering {
		t.Errorf("the index of two keys: %+v", a)
	}
	if a := w.node.Locate(0, 2, w.now); a.Where != In || a.Shard != 2 {
		t.Errorf("that of one: %+v", a)
	}
}
