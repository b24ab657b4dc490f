package directory

import (
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
)

// Shards are to be looked through of which hosts tell, of one key, that it is in this one and in that one:
// what takes a host's entry away may be a deletion, which names none. So are all where a host tells anew
// what it has, as another process or of a whole set. What one host has not heard of yet is no reason.
func TestMet(t *testing.T) {
	all := []placement.Shard{0, 1, 2, 3}
	for name, c := range map[string]struct {
		do   func(d *duo)
		want []placement.Shard
	}{
		"one host is late": {func(d *duo) {
			d.hosts[honest].Set(0, 5000, 2)
			d.round(d.order...)
			d.hosts[honest].Set(0, 5000, Gone)
		}, nil},
		"two shards": {func(d *duo) {
			d.hosts[honest].Set(0, 5000, 2)
			d.round(d.order...)
			d.hosts[liar].Set(0, 5000, 3)
			d.round(d.order...)
			for _, h := range d.hosts {
				h.Set(0, 5000, Gone)
			}
		}, []placement.Shard{2, 3}},
		"another process": {func(d *duo) { d.hosts[honest] = newHost(9) }, all},
		"a set anew":      {func(d *duo) { d.hosts[honest].Open(0, sortedRows(nil)) }, all},
	} {
		t.Run(name, func(t *testing.T) {
			eachOrder(t, func(t *testing.T, d *duo) {
				d.run()
				var met []placement.Shard
				d.node.Met = func(s placement.Shard) { met = append(met, s) }
				c.do(d)
				d.rounds(5, d.order...)
				slices.Sort(met)
				if met = slices.Compact(met); !slices.Equal(met, c.want) {
					t.Errorf("to be looked through: %v, want %v", met, c.want)
				}
			})
		})
	}
}

// However many sets a host tells anew in one message, each shard is marked once.
func TestMetOnce(t *testing.T) {
	met := 0
	l, err := New(Config{Shards: 64, Seed: 1, Disk: &simDisk{files: map[string][]byte{}, step: func() {}}, Workers: 1, Met: func(placement.Shard) { met++ }})
	if err != nil {
		t.Fatal(err)
	}
	const id = roster.ID("a host")
	l.SetHosts(testLayout, map[placement.Shard][]roster.ID{0: {id}})
	first := &News{Log: 3, Layout: testLayout, Begins: true, All: true}
	anew := &News{Log: 3, Layout: testLayout, To: MaxEvents, More: true, Events: make([]Event, MaxEvents)}
	for i := range anew.Events {
		anew.Events[i] = Event{Kind: Opened}
	}
	for i, n := range []*News{first, anew} {
		met = 0
		if err := l.News(id, l.Poll(id), n, time.Second); err != nil {
			t.Fatal(err)
		}
		if want := []int{0, 64}[i]; met != want {
			t.Errorf("message %d: %d shards marked, want %d", i, met, want)
		}
	}
}

// That hosts have named two shards for a key is remembered: after another, and beside one another, also where
// they agree again, and where the copy is another one. An overwrite, a deletion and a host that is late name none.
func TestMoved(t *testing.T) {
	all := func(d *duo, is Code) {
		for _, h := range d.hosts {
			h.Set(0, 5000, is)
		}
	}
	for name, c := range map[string]struct {
		say  func(d *duo)
		is   Code // of both in the end
		want bool
	}{
		"one after the other": {func(d *duo) {
			for _, is := range []Code{2, 3} {
				all(d, is)
				d.round(d.order...)
			}
		}, 3, true},
		"one beside the other": {func(d *duo) {
			d.hosts[honest].Set(0, 5000, 2)
			d.hosts[liar].Set(0, 5000, 3)
			d.rounds(3, d.order...)
		}, Gone, true}, // no event names both
		"deleted between": {func(d *duo) {
			for _, is := range []Code{2, Gone, 3} {
				all(d, is)
				d.round(d.order...)
			}
		}, 3, false},
		"one host is late": {func(d *duo) {
			d.hosts[honest].Set(0, 5000, 2)
			d.round(d.order...)
		}, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			eachOrder(t, func(t *testing.T, d *duo) {
				d.run()
				d.now += movedFor
				d.rounds(3, d.order...)
				c.say(d)
				all(d, c.is)
				d.rounds(3, d.order...)
				for range 2 {
					if a := d.node.Locate(0, 5000, d.now); a.Moved != c.want {
						t.Errorf("moved: %t, want %t; %+v", a.Moved, c.want, a)
					}
					if a := d.node.Locate(0, 5001, d.now); a.Moved {
						t.Errorf("another key: %+v", a)
					}
					d.node.parts[0].drop()
				}
			})
		})
	}
}

// What hosts have named before a copy came as a whole, or while this node was stopped, it has not heard; and where
// more keys have moved than it notes, it forgets some. Any key of the set may have moved then, for as long as a
// record stays hidden. Nothing can have in a set without entries.
func TestMovedUnheard(t *testing.T) {
	const id = roster.ID("a host")
	h := NewHost(2, 5)
	h.SetLayout(testLayout)
	h.Open(0, sortedRows(map[dbadapter.Index]Code{1: 1, 2: 0}))
	h.Open(1, sortedRows(nil))
	disk := &simDisk{files: map[string][]byte{}, step: func() {}}
	now := time.Minute
	var node *Locator
	start := func() {
		t.Helper()
		var err error
		if node, err = New(Config{Shards: 2, Seed: 1, Disk: disk, Workers: 1}); err != nil {
			t.Fatal(err)
		}
		node.SetHosts(testLayout, map[placement.Shard][]roster.ID{0: {id}, 1: {id}})
	}
	heard := func() {
		t.Helper()
		p := node.Poll(id)
		err := node.News(id, p, h.News(p), now)
		for take := node.Take(id, now); take != nil && err == nil; take = node.Take(id, now) {
			var b *Block
			if b, err = h.Block(take); err == nil {
				err = node.Block(id, take, b, now)
			}
		}
		for run := node.Work(); run != nil && err == nil; run = node.Work() {
			err = run()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what string, want bool) {
		t.Helper()
		if a := node.Locate(0, 1, now); a.Moved != want {
			t.Errorf("%s: moved %t: %+v", what, a.Moved, a)
		}
		if a := node.Locate(1, 1, now); a.Moved {
			t.Errorf("%s: in the set without entries: %+v", what, a)
		}
	}
	later := func(what string) {
		t.Helper()
		expect(what, true)
		now += movedFor - 1
		heard()
		expect(what+", a little less than the time later", true)
		now++
		expect(what+", the time later", false)
	}
	start()
	heard()
	later("fetched")
	if err := node.Save(); err != nil {
		t.Fatal(err)
	}
	start()
	expect("read from disk", true)
	now += time.Hour // the host is out of reach
	heard()
	if !node.parts[0].stored {
		t.Fatal("the copy was fetched anew")
	}
	later("heard again")
	for i := range dbadapter.Index(maxNoted) {
		h.Set(0, 100+i, 0)
		h.Set(0, 100+i, 1)
	}
	heard()
	expect("as many as are noted", false)
	h.Set(0, 2, 1)
	heard()
	later("one more")
}
