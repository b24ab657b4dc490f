package node

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
)

var errCrash = errors.New("the machine has crashed")

// mover is a machine that holds what the layout says, and that may crash.
type mover struct {
	*machine
	ns    *Namespace
	state *State // as it is on disk
	gone  bool   // removed, with its disk
	// steps is how many things it does to its disk until it crashes; negative: it does not.
	steps int
	holds int // how many shards it has come to hold
}

// movers are a cluster whose hosts come and go.
type movers struct {
	*rand.Rand
	t     *testing.T
	all   []*mover
	apart map[[2]int]bool
	acked map[string]dbadapter.Version
	rule  *placement.Rule
}

func newMovers(t *testing.T, seed uint64, n int) *movers {
	w := &movers{
		Rand: rand.New(rand.NewPCG(seed, 13)), t: t, apart: map[[2]int]bool{}, acked: map[string]dbadapter.Version{},
		rule: &placement.Rule{Kind: placement.Hash, Shards: 8, Replicas: 2},
	}
	for range n {
		w.join()
	}
	return w
}

// join adds a machine.
func (w *movers) join() {
	m := &mover{machine: newMachine(len(w.all) + 1), steps: -1}
	m.disk = m.wear
	m.save = func(s *State) error {
		if m.steps != 0 {
			m.state = s.clone()
		}
		return m.wear()
	}
	var (
		secret dbadapter.Secret
		state  *State
	)
	if len(w.all) == 0 {
		secret = m.NewSecret()
		state = must(m.FoundShards(secret, "notes", Policy{}, w.rule))
	} else {
		m.clock = w.all[0].clock
		role := RoleWrite
		if len(w.all) == 1 {
			role = RoleAdmin
		}
		joined := must(m.redeem(w.all[0].machine, invite(w.all[0].ns, role)))
		secret, state = joined.Secret, joined.State
	}
	m.state = state.clone()
	m.ns = must(m.open(secret, state))
	w.all = append(w.all, m)
	w.tend(len(w.all) - 1)
}

// worn says why the disk does nothing any more, or nil.
func (m *machine) worn() error {
	if m.disk == nil {
		return nil
	}
	return m.disk()
}

// wear counts a step to the disk. A crash can come before or after what is done.
func (m *mover) wear() error {
	if m.steps > 0 {
		m.steps--
	}
	if m.steps == 0 {
		return errCrash
	}
	return nil
}

// restart starts a machine that has crashed.
func (m *mover) restart(t *testing.T) {
	t.Helper()
	secret := m.ns.secret
	_ = m.ns.Close() // what it was doing is over
	m.Forget(m.ns)
	m.steps = -1
	m.ns = must(m.open(secret, must(DecodeState(must(m.state.Encode())))))
}

// tend does what is due, and what follows from the layout.
func (w *movers) tend(i int) {
	m := w.all[i]
	var failed error
	do := func(err error) {
		if err != nil && !errors.Is(err, reconcile.ErrBusy) {
			failed = errors.Join(failed, err)
		}
	}
	_, err := m.ns.Tend(w.t.Context())
	do(err)
	hold, leave := m.ns.Moves()
	for _, shard := range hold {
		_, err := m.ns.TakeShard(w.t.Context(), shard)
		do(err)
		m.holds++
	}
	for _, set := range leave {
		if err := m.ns.Leave(set); err != nil {
			do(err)
			continue
		}
		do(m.ns.Discard(w.t.Context(), set))
	}
	if m.steps == 0 {
		m.restart(w.t)
	} else if failed != nil {
		w.t.Fatalf("%d: %v", i, failed)
	}
}

// sync is a turn of one machine with another one.
func (w *movers) sync(i, j int) {
	a, b := w.all[i], w.all[j]
	if i == j || a.gone || b.gone || w.apart[[2]int{min(i, j), max(i, j)}] || a.ns.MayCall(b.ID) != nil {
		return
	}
	for _, p := range a.ns.sharedWith(b.ID) {
		_, _, err := a.syncPart(p, b.machine, syncing.Ask{})
		if p.isControl() || err == nil { // a table may come before its statement
			continue
		}
		if !errors.Is(err, ErrDenied) && !errors.Is(err, reconcile.ErrBusy) && !errors.Is(err, reconcile.ErrListsDiffer) && !errors.Is(err, reconcile.ErrNotVerified) && !errors.Is(err, syncing.ErrRejected) {
			w.t.Fatalf("%d syncs shard %d with %d: %v", i, p.set.shard, j, err)
		}
	}
}

// put writes a key at one of the machines that take it.
func (w *movers) put(i int, key string) {
	m := w.all[i]
	shard := w.home(key)
	for _, set := range m.ns.Sets() {
		if set.shard != shard {
			continue
		}
		v, err := commit(set.Write(draft(key, "value")))
		if err == nil {
			w.acked[key] = v
		} else if !errors.Is(err, ErrNotHost) {
			w.t.Fatalf("%d puts %s: %v", i, key, err)
		}
	}
}

func (w *movers) home(key string) placement.Shard {
	return w.all[0].ns.Home([]byte(key))
}

// held is the set of a shard at a machine, or nil.
func (m *mover) held(shard placement.Shard) *Set {
	for _, set := range m.ns.Sets() {
		if set.shard == shard {
			return set
		}
	}
	return nil
}

// has reports whether a machine holds a version of a key that is not older.
func (m *mover) has(shard placement.Shard, key string, v dbadapter.Version) bool {
	set := m.held(shard)
	if set == nil {
		return false
	}
	r, err := set.Get([]byte(key))
	return err == nil && r.Version.Compare(v) >= 0
}

// holders are the machines that hold a key.
func (w *movers) holders(key string) (ids []int) {
	for i, m := range w.all {
		if !m.gone && m.has(w.home(key), key, w.acked[key]) {
			ids = append(ids, i)
		}
	}
	return ids
}

// check finds each acknowledged write at one machine at least.
func (w *movers) check(what string) {
	for key := range w.acked {
		if len(w.holders(key)) == 0 {
			w.t.Fatalf("%s: no machine holds %s of shard %d", what, key, w.home(key))
		}
	}
}

// remove ends a membership, and with it the machine: not where it alone holds a record.
func (w *movers) remove(i int) {
	alive := 0
	for _, m := range w.all {
		if !m.gone {
			alive++
		}
	}
	if i < 2 || w.all[i].gone || alive <= 3 {
		return
	}
	for key := range w.acked {
		if h := w.holders(key); len(h) == 1 && h[0] == i {
			return
		}
	}
	succeeds(w.t, w.all[0].ns.Remove(w.t.Context(), w.all[i].ID, false))
	w.all[i].gone = true
	succeeds(w.t, w.all[i].ns.Close())
}

func (w *movers) pass(d time.Duration) {
	for _, m := range w.all {
		m.clock = m.clock.Add(d)
	}
}

func (w *movers) step(n int) {
	i := w.IntN(len(w.all))
	if w.all[i].gone {
		return
	}
	w.pass(time.Duration(w.IntN(3000)) * time.Millisecond)
	switch p := w.IntN(100); {
	case p < 25:
		w.tend(i)
	case p < 65:
		w.sync(i, w.IntN(len(w.all)))
	case p < 85:
		for try := range 10 { // it holds two shards of five
			w.put(i, fmt.Sprint("k", n, "-", try))
		}
	case p < 90:
		w.all[i].steps = 1 + w.IntN(6)
		w.tend(i)
		if w.all[i].steps > 0 {
			w.all[i].steps = -1
		}
	case p < 94:
		w.all[i].restart(w.t)
	case p < 96:
		w.remove(i)
	case p < 97 && len(w.all) < 8:
		w.join()
	case p < 98:
		clear(w.apart)
	default:
		j := w.IntN(len(w.all))
		w.apart[[2]int{min(i, j), max(i, j)}] = true
	}
}

// settle lets all meet, until nothing changes.
func (w *movers) settle() {
	clear(w.apart)
	for range 30 {
		w.pass(10 * time.Second)
		for i, m := range w.all {
			if m.gone {
				continue
			}
			w.tend(i)
			for j := range w.all {
				w.sync(i, j)
			}
		}
	}
}

// settled checks that each shard is where the layout says, and nowhere else, and whole.
func (w *movers) settled() {
	w.t.Helper()
	layout, stated, err := w.all[0].ns.Layout()
	if err != nil {
		w.t.Fatal(err)
	}
	for i, m := range w.all {
		if m.gone {
			continue
		}
		if _, by, err := m.ns.Layout(); err != nil || by != stated {
			w.t.Fatalf("%d has another layout: %+v, %v", i, by, err)
		}
		for s := range placement.Shard(w.rule.Shards) {
			set := m.held(s)
			switch host := layout.Has(s, m.ID); {
			case host != (set != nil):
				missing := []ID{}
				if set != nil {
					missing = set.tenure.missing()
				}
				w.t.Errorf("%d: a host of shard %d: %v, and holds it: %v; missing %v", i, s, host, set != nil, missing)
			case host && set.Recovers():
				w.t.Errorf("%d is not settled for shard %d: %+v", i, s, set.Collection())
			}
		}
	}
	for key, v := range w.acked {
		shard := w.home(key)
		for i, m := range w.all {
			if !m.gone && layout.Has(shard, m.ID) && !m.has(shard, key, v) {
				w.t.Errorf("%d, a host of shard %d, lacks %s", i, shard, key)
			}
		}
	}
}

// Hosts come and go, crash at any step to their disks, and cannot reach one another for a
// while. No acknowledged write is lost while one of those that hold it lives; and when all
// can meet again, each shard is at its hosts, whole, and nowhere else.
func TestHostsComeAndGo(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := newMovers(t, seed, 5)
			for n := range 250 {
				w.step(n)
				w.check(fmt.Sprint("step ", n))
			}
			w.settle()
			w.check("in the end")
			w.settled()
			if len(w.acked) < 20 {
				t.Errorf("%d writes say little", len(w.acked))
			}
		})
	}
}

// A host that comes takes its share, and nothing else moves.
func TestOneHostMoves(t *testing.T) {
	w := newMovers(t, 1, 4)
	w.settle()
	w.settled()
	holds := func() (n int) {
		for _, m := range w.all {
			n += m.holds
		}
		return n
	}
	before, was := holds(), must(first(w.all[0].ns.Layout()))
	w.join()
	w.settle()
	w.settled()
	is := must(first(w.all[0].ns.Layout()))
	differ := 0
	for s := range placement.Shard(is.Shards()) {
		for _, id := range is.Hosts(s) {
			if !was.Has(s, id) {
				differ++
			}
		}
	}
	if moved := holds() - before; moved != differ || moved != w.all[4].holds || moved == 0 {
		t.Errorf("%d shards were taken, %d of them by the new host; the layouts differ in %d", moved, w.all[4].holds, differ)
	}
}

func first[A, B any](a A, _ B, err error) (A, error) { return a, err }

// Sets come and go while all else that a driver runs at once goes on: syncs, writes, rounds
// of the schedule, questions about how the namespace is. (The race detector watches.) What
// ends is told so, and the last state is that of the last change.
func TestSetsComeAndGoAtOnce(t *testing.T) {
	c := newShardCrew(t, []placement.Shard{0, 1}, []placement.Shard{0, 1, 2, 3})
	a, b, sa := c.machines[0], c.machines[1], c.ns[0]
	held := sa.Hold()
	err := sa.stateLayout(t.Context(), held, must(placement.Plan(sa.rule, []ID{a.ID})))
	if held.Release(); err != nil {
		t.Fatal(err)
	}
	const rounds = 40
	var wg sync.WaitGroup
	run := func(fn func(i int) error) {
		wg.Go(func() {
			for i := range rounds {
				if err := fn(i); err != nil && !errors.Is(err, dbadapter.ErrClosed) && !errors.Is(err, reconcile.ErrBusy) &&
					!errors.Is(err, ErrDenied) && !errors.Is(err, reconcile.ErrPeer) && !errors.Is(err, reconcile.ErrNotVerified) {
					t.Error(err)
				}
			}
		})
	}
	for _, shard := range []placement.Shard{2, 3} {
		run(func(int) error {
			set, err := sa.TakeShard(t.Context(), shard)
			if err != nil {
				return err
			}
			if _, err := commit(set.Write(draft(c.keyIn(shard, "k"), "value"))); err != nil {
				return err
			}
			for err = reconcile.ErrBusy; errors.Is(err, reconcile.ErrBusy); { // the list of members changes meanwhile
				set.tenure.goes(&quorum.Row{Epoch: 9, Old: []ID{b.ID}, New: []ID{b.ID}}) // as after a move to the other machine
				set.tenure.equal(b.ID, 0, set.tenure.term())
				err = sa.Leave(set)
			}
			if err != nil {
				return err
			}
			return sa.Discard(t.Context(), set)
		})
	}
	run(func(i int) error {
		for _, set := range sa.Sets() {
			if _, err := commit(set.Write(draft(c.keyIn(set.Shard(), fmt.Sprint("put", i)), "value"))); err != nil {
				return err
			}
		}
		return nil
	})
	run(func(int) error {
		for _, set := range sa.Sets() {
			if _, _, err := a.syncPart(&set.Part, b, syncing.Ask{}); err != nil {
				return err
			}
		}
		return nil
	})
	run(func(int) error { return second(sa.Tend(t.Context())) })
	run(func(int) error {
		for _, turn := range a.Partners(a.IsMember) {
			for _, p := range turn.Parts {
				p.Rests(turn.Remote)
			}
		}
		sa.Holders(2)
		sa.Moves()
		for _, set := range sa.Sets() {
			set.Audience()
			set.Collection()
		}
		return mayLack(sa)
	})
	run(func(i int) error { return setRole(sa, idOf(10+i), RoleRead) })
	wg.Wait()
	// It is the founder of the shards that it has not taken yet.
	if sets, kept := sa.Sets(), sa.state.Load().Shards; len(sets) != 2 || len(kept) != sa.rule.Shards-2 {
		t.Errorf("%d sets, and %d in the state", len(sets), len(kept))
	}
	for shard := range placement.Shard(2) {
		for i := range rounds {
			if _, err := c.set(0, shard).Get([]byte(c.keyIn(shard, fmt.Sprint("put", i)))); err != nil {
				t.Errorf("shard %d, put%d: %v", shard, i, err)
			}
		}
	}
}
