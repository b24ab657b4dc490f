package node

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// joinUnheard has a machine join while another one is cut off from all; the others do what follows from that.
func (w *movers) joinUnheard(away int) *mover {
	var others []int
	cut := func(i int) {
		others = append(others, i)
		w.apart[[2]int{min(i, away), max(i, away)}] = true
	}
	for i := range w.all {
		if i != away {
			cut(i)
		}
	}
	w.join()
	joined := w.all[len(w.all)-1]
	joined.Elapsed = func() time.Duration { return joined.clock.Sub(noon) }
	cut(len(w.all) - 1)
	w.goOn(others...)
	w.tend(away)
	return joined
}

// goOn has machines sync and tend for five minutes.
func (w *movers) goOn(some ...int) {
	for range 30 {
		w.pass(10 * time.Second)
		for _, i := range some {
			w.tend(i)
			for _, j := range some {
				w.sync(i, j)
			}
		}
	}
}

// acknowledge writes a record.
func (set *Set) acknowledge(key string) { must(commit(set.Write(draft(key, "value")))) }

// hostOfBefore makes machine 2 a host of before of a home that alone holds a key, which it has acknowledged 10 s
// ago. All know the list; no machine has synced the set with it yet. reader holds nothing of the home.
func hostOfBefore(t *testing.T, rule *placement.Rule) (w *movers, before, reader *mover, home placement.Shard, key string) {
	w = threeMovers(t, rule)
	const a = 2
	m := w.all[a]
	was := must(first(m.ns.Layout()))
	w.joinUnheard(a)
	is := must(first(w.all[0].ns.Layout()))
	found := false
	for s := range placement.Shard(rule.Shards) {
		if was.Has(s, m.ID) && !is.Has(s, m.ID) {
			home, found = s, true
		}
	}
	if !found {
		t.Fatal("no shard leaves it")
	}
	for _, one := range w.all {
		if one != m && !is.Has(home, one.ID) {
			reader = one
		}
	}
	key = w.keyIn(home, 0)
	m.held(home).acknowledge(key)
	w.pass(10 * time.Second)
	clear(w.apart)
	for range 3 { // it hears the list, and has no time yet to sync the sets
		_, _, _ = m.follow(w.all[0].machine, m.ns.Course(w.all[0].ID))
		must(m.ns.Tend(t.Context()))
		_, _, _ = w.all[1].follow(m.machine, w.all[1].ns.Course(m.ID))
		_, _, _ = w.all[3].follow(m.machine, w.all[3].ns.Course(m.ID))
		_, _, _ = w.all[0].follow(m.machine, w.all[0].ns.Course(m.ID))
	}
	if now := must(first(m.ns.Layout())); now.Has(home, m.ID) {
		t.Fatal("it has not heard")
	}
	return w, m, reader, home, key
}

// handOver lets machine 2 hand the set over by as few syncs as that takes, drop it and say so to the reader, if
// there is one.
func (w *movers) handOver(t *testing.T, before, reader *mover, in placement.Shard) {
	is := must(first(w.all[0].ns.Layout()))
	for range 3 {
		for j, host := range w.all {
			if before.held(in) != nil && is.Has(in, host.ID) {
				w.syncShard(2, j, in)
			}
		}
		w.tend(2)
	}
	if before.held(in) != nil {
		t.Fatal("it has not handed over")
	}
	if reader != nil {
		_, _, _ = reader.follow(before.machine, reader.ns.Course(before.ID))
	}
}

var locatedRule = &placement.Rule{Kind: placement.Hash, Shards: 8, Replicas: 2, Locator: true}

// A key which a host of before has acknowledged long ago, and of which the reader has heard from it, is not
// nowhere when that host has handed the set over and has said so, while the hosts were not heard since.
func TestNowhereAfterHandover(t *testing.T) {
	w, before, reader, home, key := hostOfBefore(t, locatedRule)
	l := w.locator(reader, before.ID) // all were polled at time.Hour
	now := time.Hour + time.Second
	_, index := reader.ns.ToldAs([]byte(key))
	if a := l.Locate(home, index, now); a.Where == directory.Nowhere {
		t.Fatalf("before: %+v", a)
	}
	w.handOver(t, before, reader, home)
	now = time.Hour + 3*time.Second // no host was polled meanwhile, or the answers have not come
	tl := reader.ns.Tellers()
	l.SetHosts(tl.Layout, tl.Of)
	if reader.ns.Nowhere(l, []byte(key), now) {
		t.Errorf("a key that was acknowledged %s ago, and heard of, is no such key for sure", "10 s and more")
	}
}

// A read that asks the hosts first, which lack the record, and then the host of before, which has handed it over
// and dropped the set meanwhile, is not sure that there is none; without that host it finds the record.
func TestReadSpansHandover(t *testing.T) {
	for _, rule := range []*placement.Rule{locatedRule, {Kind: placement.Hash, Shards: 8, Replicas: 2}} {
		t.Run(fmt.Sprint(rule.Kind, rule.Locator), func(t *testing.T) {
			w, before, reader, home, key := hostOfBefore(t, rule)
			w.pass(10 * time.Second) // no host is current
			read := func(gone []ID) route.Found {
				r := reader.ns.Remote([]byte(key))
				r.Gone(gone)
				return reader.readOver(w, r, "", func(next ID) {
					if next == before.ID {
						w.handOver(t, before, nil, home)
					}
				})
			}
			got := read(nil)
			if got.Sure || !slices.Equal(got.Gone, []ID{before.ID}) {
				t.Errorf("of a key that was acknowledged more than 10 s ago it finds %+v", got)
			}
			if got = read(got.Gone); !got.Sure || got.Record == nil {
				t.Errorf("without the host of before it finds %+v", got)
			}
		})
	}
}

// readOver drives a read of a key: first is called with each node before it is asked, near is asked first.
func (m *mover) readOver(w *movers, r *Remote, near ID, first func(ID)) route.Found {
	w.t.Helper()
	var times route.Times
	o := must(r.GetOptions())
	o.Deadline = time.Minute
	get := route.NewGet(&times, r.Candidates(func(id ID) bool { return id == near }), o, 0)
	for step := get.Next(0); step.Do == route.Ask; step = get.Next(0) {
		first(step.Peer)
		ask := must(r.AskRecord(step.Peer))
		a, err := r.Record(step.Peer, ask, m.routed(w.t, w.byID(step.Peer).machine, ask))
		if err != nil {
			get.Failed(step.Peer, err, false, 0)
		} else {
			get.Answered(step.Peer, a, 0)
		}
	}
	got, _ := get.Result(0)
	return got
}
