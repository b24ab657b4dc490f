package node

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
)

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
			if _, err := c.set(0, shard).get([]byte(c.keyIn(shard, fmt.Sprint("put", i)))); err != nil {
				t.Errorf("shard %d, put%d: %v", shard, i, err)
			}
		}
	}
}
