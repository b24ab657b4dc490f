package directory

import (
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
)

// duo is one set with two hosts, of which the first may lie, and a node that follows both. No
// time passes but by run.
type duo struct {
	t     *testing.T
	node  *Locator
	hosts map[roster.ID]*Host
	lie   func(*News)  // about what the liar tells
	omit  func(*Block) // about its blocks
	now   time.Duration
	errs  int
}

const (
	liar   = roster.ID("a liar")
	honest = roster.ID("honest")
	hidden = dbadapter.Index(77)
)

// newDuo gives both hosts 200 entries, all in shard 1.
func newDuo(t *testing.T) *duo {
	d := &duo{t: t, hosts: map[roster.ID]*Host{}, now: time.Minute, lie: func(*News) {}, omit: func(*Block) {}}
	node, err := New(Config{Shards: 4, Seed: 1, Disk: &simDisk{files: map[string][]byte{}, step: func() {}}, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	d.node = node
	entries := map[dbadapter.Index]Code{}
	for i := range dbadapter.Index(200) {
		entries[1+i] = 1
	}
	for i, id := range []roster.ID{liar, honest} {
		d.hosts[id] = NewHost(4, uint64(i+1))
		d.hosts[id].Open(0, sortedRows(entries))
	}
	node.SetHosts(0, []roster.ID{liar, honest})
	return d
}

// run lets a minute pass, and looks the hidden key up at each step.
func (d *duo) run() {
	for range 120 {
		d.now += time.Second / 2
		for _, id := range []roster.ID{liar, honest} {
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
				if err != nil {
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
		if work := d.node.Work(); work != nil {
			if err := work(); err != nil {
				d.t.Fatal(err)
			}
		}
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
	d := newDuo(t)
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
}

// A host that leaves an entry out of its set, or has one more, is apart: no key of the set is
// nowhere, and none surely anywhere.
func TestHostHidesOrInvents(t *testing.T) {
	for name, is := range map[string]Code{"hides": Gone, "moves": 2} {
		d := newDuo(t)
		d.hosts[liar].Set(0, hidden, is)
		d.hosts[liar].Set(0, 4000, 3) // and an entry that there is not
		d.run()
		if a := d.node.Locate(0, 5000, d.now); a.Where != Unknown {
			t.Errorf("%s: a key that is nowhere: %+v", name, a)
		}
		if a := d.node.Locate(0, 4000, d.now); a.Sure {
			t.Errorf("%s: a key that is nowhere: %+v", name, a)
		}
		if d.status(liar).Apart+d.status(honest).Apart != 1 {
			t.Errorf("%s: %+v", name, d.node.Status())
		}
		d.node.SetHosts(0, []roster.ID{honest}) // an admin has removed it
		d.run()
		if a := d.node.Locate(0, 5000, d.now); a.Where != Nowhere {
			t.Errorf("%s: without it: %+v", name, a)
		}
	}
}

// A host whose sums are right, and whose blocks lack an entry, is caught when the set has come.
func TestHostOmitsFromBlocks(t *testing.T) {
	d := newDuo(t)
	d.omit = func(b *Block) {
		for i, x := range b.rows {
			if x.index() == hidden {
				b.rows = append(b.rows[:i:i], b.rows[i+1:]...)
				return
			}
		}
	}
	d.run()
	if d.status(liar).Faults == 0 {
		t.Errorf("it was not caught: %+v", d.node.Status())
	}
	if a := d.node.Locate(0, hidden, d.now); a.Where != In || a.Shard != 1 {
		t.Errorf("another host has told: %+v", a)
	}
}

// A host whose events say what was not, so that the entry goes and the sum stays, is caught at
// the event, or leaves the copy in doubt until it has been read.
func TestHostTelescopes(t *testing.T) {
	d := newDuo(t)
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
	if !told || d.status(liar).Faults == 0 {
		t.Errorf("it was not caught: %v, %+v", told, d.node.Status())
	}
	if a := d.node.Locate(0, hidden, d.now); a.Where != In || a.Shard != 1 {
		t.Errorf("the honest host has told: %+v", a)
	}
}

// A host whose sums are wrong is caught at once.
func TestHostMiscounts(t *testing.T) {
	d := newDuo(t)
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
}

// A set of more entries than a node takes is not fetched to its end, and its keys are asked for.
func TestSetOfTooManyEntries(t *testing.T) {
	d := newDuo(t)
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
}
