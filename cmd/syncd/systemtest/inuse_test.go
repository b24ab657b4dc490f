//go:build linux

package systemtest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/peer"
)

var (
	useDaemons = flag.Int("use-daemons", 5, "how many daemons TestShardsInUse begins with")
	useKeys    = flag.Int("use-keys", 300, "how many keys are written there")
	useRate    = flag.Float64("use-rate", 60, "how many puts a second there are, by all daemons; gets are half as many")
	useTime    = flag.Duration("use-time", 2*time.Second, "for how long each state of the cluster lasts, beside what it takes to come there")
)

// TestShardsInUse: daemons, each on a machine of its own, take puts and gets all the time,
// while another one joins, so that shards move; one is killed and comes back; one is removed
// for good; and the network falls into two parts and heals. No get at level quorum gives
// another value than the one that was acknowledged before it began, or a later one;
// shards come to be held as often as they are to be by themselves, and no acknowledged write
// is lost. docs/PERFORMANCE.md has the flags of its figures.
func TestShardsInUse(t *testing.T) {
	t.Logf("seed %d", *shardsSeed)
	machines := newMachines(t, *useDaemons+1)
	s := newShardedAt(t, machines[:*useDaemons], api.Placement{Kind: "hash", Shards: 32, Replicas: 3})
	s.settled()
	u := newUse(s)
	stop := u.run()
	u.during("all are there", func() {})

	u.during("one joins", func() {
		s.grow(machines[*useDaemons])
		u.members(s.daemons)
		s.hosts(s.daemons[len(s.daemons)-1])
		s.restored()
	})

	killed := 1 + s.random.IntN(*useDaemons-1)
	u.during("one was killed", func() { u.leave(killed); s.daemons[killed].kill() })
	u.during("it is back", func() { s.daemons[killed].restart(); u.members(s.daemons); s.restored() })

	gone := 1 + s.random.IntN(*useDaemons-1)
	if _, err := s.daemons[gone].api.Wait(t.Context(), namespace, api.WaitRequest{Timeout: "2m"}); err != nil {
		t.Fatal(err)
	}
	u.during("one was removed for good", func() {
		removed := s.daemons[gone]
		u.leave(gone)
		if err := s.daemons[0].api.RemoveMember(t.Context(), namespace, removed.id, false); err != nil {
			t.Fatal(err)
		}
		removed.kill()
		s.daemons = append(s.daemons[:gone:gone], s.daemons[gone+1:]...)
		machines = append(machines[:gone:gone], machines[gone+1:]...)
		u.members(s.daemons)
		s.restored()
	})
	u.during("the network is in two parts", func() {
		part(machines[:2], machines[2:])
	})
	u.during("it is healed", func() {
		for _, n := range machines {
			n.heal()
		}
		s.restored()
	})
	stop()
	s.settled() // a person has decided all conflicts by then
	u.equal()
}

// hosts waits until the layout names a daemon.
func (s *sharded) hosts(d *daemon) {
	s.t.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) { // no daemon tells when it is so
		layout, err := d.api.Layout(s.t.Context(), namespace)
		if err == nil && slices.ContainsFunc(layout.Hosts, func(hosts []string) bool { return slices.Contains(hosts, d.id) }) {
			return
		}
		if time.Since(began) > movePatience {
			s.t.Fatalf("after %s %s is host of no shard: %v", movePatience, d.name, err)
		}
	}
}

func newShardedAt(t *testing.T, machines []*network, p api.Placement) *sharded {
	t.Helper()
	s := newSharded(t, 0, p)
	for _, n := range machines {
		s.grow(n)
	}
	return s
}

// use is the puts and gets of a cluster's users.
type use struct {
	s *sharded

	mu      sync.Mutex // guards what follows
	daemons []*daemon  // that are asked
	keys    []courseOf
	counts  map[string]int
}

// courseOf is what was written under a key, by one writer: values 1, 2, 3, ….
type courseOf struct {
	tried, acked int
	busy         bool
}

func newUse(s *sharded) *use {
	u := &use{s: s, keys: make([]courseOf, *useKeys), counts: map[string]int{}}
	s.person = u.forget
	u.members(s.daemons)
	return u
}

// forget decides all conflicts for what stands. Users write keys at one daemon after the other, and
// so versions that their hosts had not passed on to each other yet; a host that is one no more
// holds its shard until a person has decided.
func (u *use) forget() {
	var deciding sync.WaitGroup
	u.mu.Lock()
	daemons := u.daemons
	u.mu.Unlock()
	for _, d := range daemons {
		deciding.Go(func() { u.forgetAt(d) })
	}
	deciding.Wait()
}

func (u *use) forgetAt(d *daemon) {
	kept, err := d.api.Kept(u.s.t.Context(), namespace, client.Conflicts, "", nil, 0, 1000)
	if err != nil && !u.gone(d) {
		u.s.t.Error(err)
	}
	for _, one := range kept.Entries {
		if err := d.api.ForgetKept(u.s.t.Context(), namespace, client.Conflicts, one.Seq); err != nil && !errors.Is(err, peer.ErrNotFound) && !u.gone(d) {
			u.s.t.Error(err)
		}
		u.mu.Lock()
		u.count("conflicts decided")
		u.mu.Unlock()
	}
}

// members are the daemons that are asked from now on.
func (u *use) members(all []*daemon) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.daemons = append([]*daemon(nil), all...)
}

// leave is that one of them is asked no more.
func (u *use) leave(i int) {
	u.members(append(append([]*daemon(nil), u.s.daemons[:i]...), u.s.daemons[i+1:]...))
}

// run has users put and get until it is stopped.
func (u *use) run() (stop func()) {
	ctx, cancel := context.WithCancel(u.s.t.Context())
	var running sync.WaitGroup
	random := rand.New(rand.NewPCG(*shardsSeed, 7))
	running.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) { // a person looks again and again
			u.forget()
		}
	})
	running.Go(func() {
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		began := time.Now()
		for i := 0; ctx.Err() == nil; i++ {
			for float64(i) >= time.Since(began).Seconds()**useRate { // what a busy machine delays is made up for
				select {
				case <-ticker.C:
				case <-ctx.Done():
					return
				}
			}
			d, key := u.drawn(random)
			running.Go(func() { u.put(d, key) })
			if i%2 == 0 {
				d, key := u.drawn(random)
				running.Go(func() { u.get(d, key) })
			}
		}
	})
	return func() { cancel(); running.Wait() }
}

func (u *use) drawn(random *rand.Rand) (d *daemon, key int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.daemons[random.IntN(len(u.daemons))], random.IntN(len(u.keys))
}

// count notes what has become of a put or a get.
func (u *use) count(what string) { u.counts[what]++ }

func (u *use) put(d *daemon, key int) {
	u.mu.Lock()
	k := &u.keys[key]
	if k.busy { // each key has one writer at a time
		u.count("puts left out")
		u.mu.Unlock()
		return
	}
	k.busy = true
	k.tried++
	value := k.tried
	u.mu.Unlock()
	ctx, cancel := context.WithTimeout(u.s.t.Context(), patience)
	defer cancel()
	_, err := d.api.Put(ctx, namespace, nameOf(key), strings.NewReader(fmt.Sprint(value)), client.PutOptions{}, client.Condition{})
	u.mu.Lock()
	defer u.mu.Unlock()
	k.busy = false
	switch {
	case err == nil:
		u.count("puts acknowledged")
		k.acked = value
	case errors.Is(err, peer.ErrUnconfirmed), errors.Is(err, peer.ErrUnreachable):
		u.count("puts without an acknowledgement")
	case errors.Is(err, peer.ErrBusy):
		u.count("puts refused as busy")
	case u.away(d):
		u.count("puts at a daemon that went away")
	default:
		u.s.t.Errorf("%s: put: %v", d.name, err)
	}
}

// gone is away for a caller that does not hold mu.
func (u *use) gone(d *daemon) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.away(d)
}

// away reports that a daemon was asked before it went away.
func (u *use) away(d *daemon) bool {
	for _, other := range u.daemons {
		if other == d {
			return false
		}
	}
	return true
}

func nameOf(key int) []byte { return fmt.Appendf(nil, "key %d", key) }

func (u *use) get(d *daemon, key int) {
	u.mu.Lock()
	least := u.keys[key].acked // 0: none
	u.mu.Unlock()
	ctx, cancel := context.WithTimeout(u.s.t.Context(), patience)
	defer cancel()
	value, err := d.api.Get(ctx, namespace, nameOf(key), client.GetOptions{})
	u.mu.Lock()
	defer u.mu.Unlock()
	var got int
	switch {
	case err == nil:
		u.count("gets of a value")
		if _, err := fmt.Sscan(string(value.Bytes), &got); err != nil {
			u.s.t.Errorf("%s reads %q", d.name, value.Bytes)
		}
	case errors.Is(err, peer.ErrNotFound):
		u.count("gets of nothing")
	case u.away(d):
		u.count("gets at a daemon that went away")
		return
	case errors.Is(err, peer.ErrTooFew), errors.Is(err, peer.ErrUnreachable), errors.Is(err, peer.ErrBusy):
		u.count("gets unavailable")
		return
	default:
		u.s.t.Errorf("%s: get: %v", d.name, err)
		return
	}
	if got < least || got > u.keys[key].tried {
		u.count("gets wrong")
		u.s.t.Errorf("%s reads %d as the value of key %d, and %d was acknowledged before, of %d that were tried",
			d.name, got, key, least, u.keys[key].tried)
	}
}

// during brings the cluster into a state, lets it last, and tells what became of puts and gets.
func (u *use) during(what string, come func()) {
	u.s.t.Helper()
	u.mu.Lock()
	clear(u.counts)
	u.mu.Unlock()
	began := time.Now()
	come()
	time.Sleep(*useTime) // puts and gets go on: it is what is tested
	u.mu.Lock()
	defer u.mu.Unlock()
	u.s.t.Logf("%s, %s: %v", what, time.Since(began).Round(time.Millisecond), u.counts)
}

// equal waits until each daemon reads what was acknowledged last of each key.
func (u *use) equal() {
	*shardsKeys = len(u.keys)
	for key, k := range u.keys {
		name := string(nameOf(key))
		for value := range k.tried {
			u.s.open[name] = append(u.s.open[name], fmt.Sprint(value+1))
		}
		if k.acked > 0 {
			u.s.acknowledged[name] = fmt.Sprint(k.acked)
		}
		u.s.open[name] = u.s.open[name][min(k.acked, len(u.s.open[name])):]
	}
	u.s.read()
}
