package node

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// threeMovers are three members of a namespace that is cut into shards, each with all that it is to hold.
func threeMovers(t *testing.T, rule *placement.Rule) *movers {
	w := &movers{Rand: rand.New(rand.NewPCG(1, 13)), t: t, apart: map[[2]int]bool{}, acked: map[string]dbadapter.Version{}, rule: rule}
	for range 3 {
		w.join()
	}
	for _, m := range w.all {
		m.Elapsed = func() time.Duration { return m.clock.Sub(noon) }
	}
	w.settle()
	return w
}

func (w *movers) byID(id ID) *mover {
	for _, m := range w.all {
		if m.ID == id {
			return m
		}
	}
	return nil
}

// read is a read at a machine, as drivers do it.
func (w *movers) read(m *mover, key string) (route.Found, error) {
	var times route.Times
	r := m.ns.Remote([]byte(key))
	o := must(r.GetOptions())
	o.Deadline = time.Minute
	get := route.NewGet(&times, r.Candidates(func(ID) bool { return true }), o, 0)
	for step := get.Next(0); step.Do == route.Ask; step = get.Next(0) {
		ask := must(r.AskRecord(step.Peer))
		if a, err := r.Record(step.Peer, ask, m.routed(w.t, w.byID(step.Peer).machine, ask)); err != nil {
			get.Failed(step.Peer, err, false, 0)
		} else {
			get.Answered(step.Peer, a, 0)
		}
	}
	return get.Result(0)
}

// locator is one of a machine that has followed all tellers, last behind the others.
func (w *movers) locator(m *mover, last ...ID) *directory.Locator {
	l := must(directory.New(directory.Config{Shards: w.rule.Shards, Disk: files{}}))
	tl := m.ns.Tellers()
	l.SetHosts(tl.Layout, tl.Of)
	first := slices.DeleteFunc(slices.Clone(tl.All), func(id ID) bool { return slices.Contains(last, id) })
	for range 3 {
		for _, id := range slices.Concat(first, last) {
			turn := l.Follow(id, false)
			for q := turn.Next(time.Hour); q != nil; q = turn.Next(time.Hour) {
				if err := turn.Answered(must(w.byID(id).ns.Tell(w.t.Context(), q, nil)), time.Hour); err != nil {
					w.t.Fatal(err)
				}
			}
		}
		for run := l.Work(); run != nil; run = l.Work() {
			if err := run(); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	return l
}

// A former host still reads a write that it has acknowledged and not handed over yet. The new hosts lack the
// record, so no read of it is sure.
func TestHolderOfBeforeReadsWhatItHolds(t *testing.T) {
	for _, rule := range []*placement.Rule{
		{Kind: placement.Hash, Shards: 8, Replicas: 2},
		{Kind: placement.Hash, Shards: 8, Replicas: 2, Locator: true},
	} {
		t.Run(fmt.Sprint(rule.Kind, rule.Locator), func(t *testing.T) {
			w := threeMovers(t, rule)
			const a = 2
			m := w.all[a]
			was := must(first(m.ns.Layout()))
			w.joinUnheard(a)
			is := must(first(w.all[0].ns.Layout()))
			home, found := placement.Shard(0), false
			for s := range placement.Shard(rule.Shards) {
				if was.Has(s, m.ID) && !is.Has(s, m.ID) {
					home, found = s, true
				}
			}
			if !found {
				t.Fatal("no shard leaves it")
			}
			key := w.keyIn(home, 0)
			m.held(home).acknowledge(key)
			w.pass(10 * time.Second)
			clear(w.apart)
			for range 3 { // it hears the list, and has no time yet to sync the sets
				_, _, _ = m.follow(w.all[0].machine, m.ns.Course(w.all[0].ID))
				must(m.ns.Tend(t.Context()))
			}
			if now := must(first(m.ns.Layout())); now.Has(home, m.ID) {
				t.Fatal("it has not heard")
			}
			for _, reader := range []*mover{m, w.all[0]} {
				if got, err := w.read(reader, key); err != nil || got.Record == nil || got.Sure {
					t.Errorf("%s reads %+v, %v", reader.ID, got, err)
				}
			}
			if !rule.Locator {
				return
			}
			l := w.locator(m)
			_, index := m.ns.ToldAs([]byte(key))
			if a := l.Locate(home, index, time.Hour); a.Where != directory.In || a.Shard != home || a.Sure {
				t.Errorf("its locator says %+v", a)
			}
		})
	}
}

// While a member may hold a set without having said so, no key of it is nowhere: it was a host, took a write, and
// was cut off before it said that it holds the set.
func TestNowhereHeedsMembersThatHaveNotSaid(t *testing.T) {
	w := threeMovers(t, locatedRule)
	x, third := w.all[0], w.all[2]
	home := placement.Shard(0)
	for s := range placement.Shard(w.rule.Shards) {
		if x.held(s) != nil && w.all[1].held(s) != nil {
			home = s
		}
	}
	key := w.keyIn(home, 0)
	w.apart[[2]int{0, 2}], w.apart[[2]int{1, 2}] = true, true
	both := func() {
		for range 3 {
			w.pass(CurrentFor)
			w.tend(0)
			w.sync(0, 1)
			w.tend(1)
			w.sync(1, 0)
		}
	}
	both()
	w.state(x, x.ID, third.ID)
	_, _, _ = third.follow(x.machine, third.ns.Course(x.ID))
	_, _, _ = third.follow(x.machine, third.ns.Course(x.ID))
	w.tend(2)
	set := third.held(home)
	if set == nil {
		t.Fatal("the third has not taken it")
	}
	set.acknowledge(key)
	w.state(x, x.ID, w.all[1].ID)
	both()
	both()
	if got, err := w.read(x, key); err != nil || got.Sure {
		t.Errorf("a read at the hosts: %+v, %v", got, err)
	}
	l := w.locator(x)
	if _, index := x.ns.ToldAs([]byte(key)); l.Locate(home, index, time.Hour).Where != directory.Nowhere {
		t.Fatal("all tellers are heard, and the locator does not say nowhere: the test shows nothing")
	}
	if x.ns.Nowhere(l, []byte(key), time.Hour) {
		t.Error("it is nowhere")
	}
}

// files are a locator's.
type files map[string][]byte

func (f files) Read(name string) ([]byte, error) { return f[name], nil }

func (f files) Write(name string, data []byte) error {
	f[name] = data
	return nil
}
