package directory

import (
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
)

// duo is one set with two hosts, of which the first may lie, and a node that follows both. No
// time passes but by run.
type duo struct {
	t     *testing.T
	node  *Locator
	hosts map[roster.ID]*Host
	order []roster.ID  // in which they are polled, and named
	lie   func(*News)  // about what the liar tells
	omit  func(*Block) // about its blocks
	mute  bool         // it answers no Take
	idle  bool         // the node does no work: it builds no base
	now   time.Duration
	errs  int
}

// testLayout is the layout of nodes and hosts in tests.
const testLayout = 7

const (
	liar   = roster.ID("a liar")
	honest = roster.ID("honest")
	hidden = dbadapter.Index(77)
)

// eachOrder runs a test with the liar before, and behind, the honest host.
func eachOrder(t *testing.T, test func(t *testing.T, d *duo)) {
	for _, order := range [][]roster.ID{{liar, honest}, {honest, liar}} {
		t.Run("first "+string(order[0]), func(t *testing.T) { test(t, newDuo(t, order)) })
	}
}

// newDuo gives both hosts 200 keys, all in shard 1.
func newDuo(t *testing.T, order []roster.ID) *duo {
	d := &duo{t: t, order: order, hosts: map[roster.ID]*Host{}, now: time.Minute, lie: func(*News) {}, omit: func(*Block) {}}
	node, err := New(Config{Shards: 4, Seed: 1, Disk: &simDisk{files: map[string][]byte{}, step: func() {}}, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	d.node = node
	for i, id := range []roster.ID{liar, honest} {
		d.hosts[id] = newHost(uint64(i + 1))
	}
	node.SetHosts(testLayout, map[placement.Shard][]roster.ID{0: order})
	return d
}

// newHost tells of 200 keys, all in shard 1.
func newHost(log uint64) *Host {
	entries := map[dbadapter.Index]Code{}
	for i := range dbadapter.Index(200) {
		entries[1+i] = 1
	}
	h := NewHost(4, log)
	h.SetLayout(testLayout)
	h.Open(0, sortedRows(entries))
	return h
}

func (d *duo) rounds(n int, ids ...roster.ID) {
	d.t.Helper()
	for range n {
		d.round(ids...)
	}
}

// round lets half a second pass, in which the node asks some of the hosts.
func (d *duo) round(ids ...roster.ID) {
	d.t.Helper()
	d.now += time.Second / 2
	for _, id := range ids {
		p := d.node.Poll(id)
		n := d.hosts[id].News(p)
		if id == liar {
			d.lie(n)
		}
		if d.node.News(id, p, n, d.now) != nil {
			d.errs++
		}
		if take := d.node.Take(id, d.now); take != nil {
			b, err := d.hosts[id].Block(take)
			if err != nil || id == liar && d.mute {
				d.node.TakeFailed(id, take.Home)
				continue
			}
			if id == liar {
				d.omit(b)
			}
			if d.node.Block(id, take, b, d.now) != nil {
				d.errs++
			}
		}
	}
	if d.idle {
		return
	}
	if work := d.node.Work(); work != nil {
		if err := work(); err != nil {
			d.t.Fatal(err)
		}
	}
}

// run lets a minute pass, and looks the hidden key up at each step.
func (d *duo) run() {
	d.t.Helper()
	for range 120 {
		d.round(d.order...)
		if a := d.node.Locate(0, hidden, d.now); a.Where == Nowhere || a.Sure && a.Shard != 1 {
			d.t.Fatalf("at %v the hidden key is %+v", d.now, a)
		}
	}
}

func (d *duo) status(id roster.ID) Status {
	for _, s := range d.node.Status() {
		if s.Host == id {
			return s
		}
	}
	return Status{}
}

func TestHonestDuo(t *testing.T) {
	eachOrder(t, func(t *testing.T, d *duo) {
		d.run()
		if a := d.node.Locate(0, hidden, d.now); a.Where != In || a.Shard != 1 {
			t.Errorf("%+v", a)
		}
		if a := d.node.Locate(0, 5000, d.now); a.Where != Nowhere {
			t.Errorf("%+v", a)
		}
		if a := d.node.Locate(0, 5000, d.now+Fresh+1); a.Where != Unknown {
			t.Errorf("after the hosts have fallen silent: %+v", a)
		}
		d.node.Wrote(0, 5001, 3, d.now)
		if a := d.node.Locate(0, 5001, d.now); a.Where != OneOf || a.Shard != 3 {
			t.Errorf("what this node wrote: %+v", a)
		}
		if a := d.node.Locate(0, 5001, d.now+2*Fresh+1); a.Where != Unknown {
			t.Errorf("later: %+v", a)
		}
	})
}

// Where a host goes by another layout than the node, a host that the node does not know may hold a key.
func TestNowhereNeedsOneLayout(t *testing.T) {
	eachOrder(t, func(t *testing.T, d *duo) {
		d.hosts[liar].SetLayout(6)
		d.run()
		if a := d.node.Locate(0, 5000, d.now); a.Where != Unknown {
			t.Errorf("a host has another layout: %+v", a)
		}
		d.hosts[liar].SetLayout(testLayout)
		d.rounds(1, d.order...)
		if a := d.node.Locate(0, 5000, d.now); a.Where != Nowhere {
			t.Errorf("both have the node's: %+v", a)
		}
		d.node.SetHosts(8, nil)
		if a := d.node.Locate(0, 5000, d.now); a.Where != Unknown {
			t.Errorf("the node has a later one: %+v", a)
		}
	})
}

// A host that leaves a key out of its set, or has one more, is apart: no key of the set is
// nowhere, and none surely anywhere.
func TestHostHidesOrInvents(t *testing.T) {
	for name, is := range map[string]Code{"hides": Gone, "moves": 2} {
		eachOrder(t, func(t *testing.T, d *duo) { hidesOrInvents(t, d, name, is) })
	}
}

func hidesOrInvents(t *testing.T, d *duo, name string, is Code) {
	d.hosts[liar].Set(0, hidden, is)
	d.hosts[liar].Set(0, 4000, 3) // and a key that there is not
	d.run()
	if a := d.node.Locate(0, 5000, d.now); a.Where != Unknown {
		t.Errorf("%s: a key that is nowhere: %+v", name, a)
	}
	if a := d.node.Locate(0, 4000, d.now); a.Sure {
		t.Errorf("%s: a key that is nowhere: %+v", name, a)
	}
	if d.status(liar).Apart != 1 || d.status(honest).Apart != 1 { // which of them lies, the node cannot know
		t.Errorf("%s: %+v", name, d.node.Status())
	}
	d.node.SetHosts(testLayout, map[placement.Shard][]roster.ID{0: {honest}}) // an admin has removed it
	d.run()
	if a := d.node.Locate(0, 5000, d.now); a.Where != Nowhere {
		t.Errorf("%s: without it: %+v", name, a)
	}
}

// A host whose sums are right, and whose blocks lack a key, is caught when the set has come.
func TestHostOmitsFromBlocks(t *testing.T) {
	eachOrder(t, func(t *testing.T, d *duo) {
		d.omit = func(b *Block) {
			for i, x := range b.rows {
				if x.index() == hidden {
					b.rows = append(b.rows[:i:i], b.rows[i+1:]...)
					return
				}
			}
		}
		d.run()
		if d.order[0] == liar && d.status(liar).Faults == 0 { // else the honest host is asked for the set
			t.Errorf("it was not caught: %+v", d.node.Status())
		}
		if a := d.node.Locate(0, hidden, d.now); a.Where != In || a.Shard != 1 {
			t.Errorf("another host has told: %+v", a)
		}
	})
}

// A host whose events say what was not, so that the key goes and the sum stays, is caught at
// the event, or leaves the copy in doubt until it has been read.
func TestHostTelescopes(t *testing.T) {
	eachOrder(t, func(t *testing.T, d *duo) {
		d.run()
		told := false
		d.lie = func(n *News) {
			if told || n.Begins || n.More {
				return
			}
			told = true
			n.Events = append(n.Events, Event{Index: hidden, Was: Gone, Is: 3}, Event{Index: hidden, Was: 3, Is: Gone})
			n.To += 2
		}
		d.run()
		if !told || d.order[0] == liar && d.status(liar).Faults == 0 { // else the copy does not rest on it
			t.Errorf("it was not caught: %v, %+v", told, d.node.Status())
		}
		if a := d.node.Locate(0, hidden, d.now); a.Where != In || a.Shard != 1 {
			t.Errorf("the honest host has told: %+v", a)
		}
	})
}

// A host that is attached and whose events say what was not is believed neither alone nor
// when the copy comes to follow it, since the other host has begun anew or is silent.
func TestHostTelescopesApart(t *testing.T) {
	for name, is := range map[string][2]Code{"takes away": {Gone, 3}, "moves": {3, Gone}} {
		for _, restarts := range []bool{false, true} {
			eachOrder(t, func(t *testing.T, d *duo) {
				d.node.SetHosts(testLayout, map[placement.Shard][]roster.ID{0: {honest}})
				d.rounds(40, honest)
				d.node.SetHosts(testLayout, map[placement.Shard][]roster.ID{0: d.order})
				d.rounds(40, d.order...)
				tellFalse(d.hosts[liar], is[0], is[1])
				d.rounds(1, d.order...)
				if restarts {
					d.hosts[honest] = newHost(99)
					d.rounds(1, d.order...)
				} else {
					d.rounds(25, liar)
				}
				tellFalse(d.hosts[liar], is[1], is[0])
				d.run()
				if a := d.node.Locate(0, hidden, d.now); a.Where != In || a.Shard != 1 {
					t.Errorf("%s, the honest host begins anew: %v: %+v", name, restarts, a)
				}
				if d.status(honest).Faults > 0 {
					t.Errorf("%s, the honest host begins anew: %v: it is blamed: %+v", name, restarts, d.node.Status())
				}
			})
		}
	}
}

// tellFalse makes a host say that the hidden key has changed, from what it did not say.
func tellFalse(h *Host, was, is Code) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sets[0].sum.change(hidden, was, is)
	h.note(Event{Home: 0, Kind: Changed, Index: hidden, Was: was, Is: is})
}

// A host whose sums are wrong is caught at once.
func TestHostMiscounts(t *testing.T) {
	eachOrder(t, func(t *testing.T, d *duo) {
		d.run()
		d.lie = func(n *News) {
			for i := range n.Sums {
				n.Sums[i].Sum[0]++
			}
		}
		d.hosts[liar].Set(0, 300, 2)
		d.hosts[honest].Set(0, 300, 2)
		d.run()
		if d.errs == 0 || d.status(liar).Faults == 0 {
			t.Errorf("it was not caught: %+v", d.node.Status())
		}
		if a := d.node.Locate(0, 300, d.now); a.Where != In || a.Shard != 2 {
			t.Errorf("%+v", a)
		}
	})
}

// A set of more keys than a node takes is not fetched to its end, and its keys are asked for.
func TestSetOfTooManyEntries(t *testing.T) {
	eachOrder(t, func(t *testing.T, d *duo) {
		d.node.maxSet = 199
		d.run()
		if a := d.node.Locate(0, hidden, d.now); d.errs == 0 || a.Where != Unknown {
			t.Errorf("%d errors, %+v", d.errs, a)
		}
		d.node.maxSet = 200
		d.now += maxRest
		d.run()
		if a := d.node.Locate(0, hidden, d.now); a.Where != In {
			t.Errorf("with room for it: %+v", a)
		}
	})
}

// A host that answers polls, and no Take, or with blocks that come to no end, holds up neither
// its own sets nor those of others.
func TestHostHoldsUp(t *testing.T) {
	for name, lie := range map[string]func(*duo){
		"answers no take":       func(d *duo) { d.mute = true },
		"a block of the future": func(d *duo) { d.omit = func(b *Block) { b.Seq = 1 << 62 } },
		"small blocks": func(d *duo) {
			d.omit = func(b *Block) { b.rows, b.Last = b.rows[:min(1, len(b.rows))], false }
		},
	} {
		eachOrder(t, func(t *testing.T, d *duo) {
			lie(d)
			d.node.SetHosts(testLayout, map[placement.Shard][]roster.ID{1: {liar}})
			d.node.SetHosts(testLayout, map[placement.Shard][]roster.ID{2: {honest}})
			for _, id := range d.order {
				d.hosts[id].Open(1, sortedRows(map[dbadapter.Index]Code{1: 1}))
				d.hosts[id].Open(2, sortedRows(map[dbadapter.Index]Code{1: 3}))
			}
			d.run()
			if a := d.node.Locate(0, hidden, d.now); a.Where != In {
				t.Errorf("%s: a set of both: %+v, %+v", name, a, d.node.Status())
			}
			if a := d.node.Locate(2, 1, d.now); a.Where != In || a.Shard != 3 {
				t.Errorf("%s: a set of the honest host: %+v", name, a)
			}
			if a := d.node.Locate(1, 2, d.now); a.Where == Nowhere && d.mute {
				t.Errorf("%s: its own set: %+v", name, a)
			}
		})
	}
}

// A set that grows beyond what a node takes by its events is let go of.
func TestSetGrowsTooLarge(t *testing.T) {
	eachOrder(t, func(t *testing.T, d *duo) {
		d.node.maxSet = 300
		d.run()
		for i := range dbadapter.Index(100) {
			for _, id := range d.order {
				d.hosts[id].Set(0, 1000+i, 1)
			}
		}
		d.run()
		if a := d.node.Locate(0, 1050, d.now); a.Where != In {
			t.Errorf("with room for it: %+v", a)
		}
		for _, id := range d.order {
			d.hosts[id].Set(0, 1200, 1)
		}
		d.rounds(1, d.order...)
		if a := d.node.Locate(0, 1050, d.now); a.Where != Unknown {
			t.Errorf("without: %+v", a)
		}
	})
}
