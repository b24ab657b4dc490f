package peer

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
)

// A host that does not answer makes nothing stale of what the others tell.
func TestSilentHostHoldsUpNoOther(t *testing.T) {
	c := newLocatedCluster(t, 3, placement.Hash)
	tellers := c.spaces[0].core.Tellers()
	home := placement.Shard(0)
	var silent node.ID
	var asker int
	for i, n := range c.nodes {
		if id := node.ID(n.ID()); slices.Contains(tellers.Of[home], id) {
			asker = i
		} else {
			silent = id
		}
	}
	if !slices.Contains(tellers.All, silent) {
		t.Skip("by the ids of this run a node hosts nothing") // 1 run of some thousand
	}
	ns := c.spaces[asker]
	f := ns.follows
	asked, stop := make(chan struct{}), make(chan struct{})
	heard := make(chan node.ID)
	f.ask = func(ctx context.Context, id node.ID, m directory.Message) (directory.Message, error) {
		if id == silent {
			asked <- struct{}{}
			<-stop // longer than any patience
			return nil, ctx.Err()
		}
		if p, polls := m.(*directory.Poll); polls {
			p.Wait = false
		}
		return ns.feedOf(ctx, id, m)
	}
	f.turns.over = func(id node.ID) { heard <- id }
	var now atomic.Int64
	now.Store(int64(c.time))
	f.now = func() time.Duration { return time.Duration(now.Load()) }
	for round := range 5 {
		c.pass(followEvery)
		now.Store(int64(c.time))
		ns.heedTellers()
		ns.followDue()
		if round == 0 {
			<-asked
		}
		for range 2 {
			if id := <-heard; id == silent {
				t.Fatal("the silent host has answered")
			}
		}
		for _, s := range f.locator.Status() {
			if s.Host != silent && c.time-s.Heard != 0 {
				t.Errorf("in round %d a host was last heard %v ago", round, c.time-s.Heard)
			}
		}
	}
	nowhere := 0
	for k := range 200 {
		key := fmt.Append(nil, "none ", k)
		if at := ns.core.Home(key); !slices.Contains(tellers.Of[at], silent) && c.where(ns, string(key)) == directory.Nowhere {
			nowhere++
		} else if slices.Contains(tellers.Of[at], silent) && c.where(ns, string(key)) == directory.Nowhere {
			t.Errorf("%q is nowhere, and a host of it is silent", key)
		}
	}
	if nowhere == 0 {
		t.Error("no key is nowhere whose hosts have answered")
	}
	close(stop)
	if id := <-heard; id != silent {
		t.Errorf("%s was asked twice", id)
	}
}

// turned are the turns of so many hosts, in virtual time.
type turned struct {
	followTurns
	time  time.Duration
	under map[node.ID]*followTurn
	begun map[node.ID][]time.Duration
}

func newTurned(hosts int) *turned {
	u := &turned{under: map[node.ID]*followTurn{}, begun: map[node.ID][]time.Duration{}, time: time.Minute}
	var all []node.ID
	for i := range hosts {
		all = append(all, node.ID(fmt.Sprintf("host %03d", i)))
	}
	u.set(all)
	return u
}

// tick lets half a second pass: all hosts that are due are asked, of which the silent ones do not
// answer for ten seconds.
func (u *turned) tick(silent func(node.ID) bool) {
	u.time += followTick
	for id, turn := range u.under {
		if u.time-turn.begun >= followPatience {
			delete(u.under, id)
			u.ended(id, turn, followFailed, u.time)
		}
	}
	for id, turn := u.begin(u.time); turn != nil; id, turn = u.begin(u.time) {
		u.begun[id] = append(u.begun[id], u.time)
		if silent(id) {
			u.under[id] = turn
		} else {
			u.ended(id, turn, followAnswered, u.time)
		}
	}
}

// Each host that answers is asked every two seconds, whatever others do; those that do not are
// asked now and then, so many at once.
func TestFollowTurns(t *testing.T) {
	const hosts, away = 100, 60
	u := newTurned(hosts)
	silent := func(id node.ID) bool { return id < node.ID(fmt.Sprintf("host %03d", away)) }
	most := 0
	for range 240 { // two minutes
		u.tick(silent)
		most = max(most, len(u.under))
	}
	if most > followMost {
		t.Errorf("%d hosts were asked at once", most)
	}
	if len(u.begun) != hosts {
		t.Errorf("%d hosts of %d were asked", len(u.begun), hosts)
	}
	for id, at := range u.begun {
		if silent(id) {
			if len(at) < 2 || len(at) > 8 {
				t.Errorf("%s, which is silent, was asked %d times", id, len(at))
			}
			continue
		}
		for i := 1; i < len(at); i++ {
			if gap := at[i] - at[i-1]; gap > directory.Fresh && at[i-1] > time.Minute+followPatience+directory.Fresh {
				t.Errorf("%s was asked %v after the last time", id, gap)
			}
		}
		if len(at) < 50 {
			t.Errorf("%s was asked %d times", id, len(at))
		}
	}
	u.set([]node.ID{"host 000"})
	clear(u.begun)
	for range 100 {
		u.tick(func(node.ID) bool { return false })
	}
	if len(u.begun) != 1 || len(u.of) != 1 || len(u.begun["host 000"]) < 14 { // it may be under way, and rest then, for ten seconds each
		t.Errorf("of one host %d are asked, it %d times, and %d are known", len(u.begun), len(u.begun["host 000"]), len(u.of))
	}
}

// Which members tell is not computed again before something of it changes.
func TestTellersAreKept(t *testing.T) {
	c := newLocatedCluster(t, 3, placement.Hash)
	ns := c.spaces[0]
	before := ns.core.Tellers()
	for range 3 {
		c.now.Add(int64(time.Minute))
		if ns.core.Tellers() != before {
			t.Fatal("nothing has changed, and it was computed again")
		}
	}
	for _, hosts := range before.Of {
		if len(hosts) != 2 {
			t.Errorf("a set has the hosts %v", hosts)
		}
	}
	if len(before.All) < 2 || !slices.IsSorted(before.All) {
		t.Errorf("all are %v", before.All)
	}
	gone := c.nodes[2].ID()
	c.must(ns.ForceRemove(t.Context(), gone))
	after := ns.core.Tellers()
	if slices.Contains(after.All, node.ID(gone)) {
		t.Error("one that was removed is asked")
	}
	for home, hosts := range before.Of {
		if !slices.Contains(hosts, node.ID(gone)) && !slices.Equal(hosts, after.Of[home]) {
			t.Errorf("set %d: %v, then %v", home, hosts, after.Of[home])
		}
	}
}
