package peer

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/placement"

	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
)

// A poll that waits at a host of a key is answered once the key is written, so that the node
// knows of it without another poll.
func TestPollsWaitForNews(t *testing.T) {
	c := newLocatedCluster(t, 3, placement.Hash)
	const asker, key = 2, "new"
	ns := c.spaces[asker]
	if a := c.where(ns, key); a != directory.Nowhere {
		t.Fatalf("before it is written it is %s", a)
	}
	tellers := ns.core.Tellers()
	var polls sync.WaitGroup
	for _, id := range tellers.All {
		polls.Go(func() {
			again, err := ns.followHost(t.Context(), id, true)
			if tells := slices.Contains(tellers.Of[ns.core.Home([]byte(key))], id); err != nil || again != tells {
				t.Errorf("a host that tells of the key: %v; the next poll may follow at once: %v, %v", tells, again, err)
			}
		})
	}
	_, err := c.put(0, key, "1", All)
	c.must(err)
	polls.Wait()
	if a := c.where(ns, key); a != directory.In {
		t.Errorf("its hosts have answered, and it is %s", a)
	}
}

// Turns that wait take no places of those that do not, and a turn that has waited is followed by the
// next one at once.
func TestTurnsThatWait(t *testing.T) {
	u := newTurned(followWaits + followHosts + 1)
	var waits []node.ID
	turns := map[node.ID]*followTurn{}
	for id, turn := u.begin(u.time); turn != nil; id, turn = u.begin(u.time) {
		turns[id] = turn
		if turn.waits {
			waits = append(waits, id)
		}
	}
	if len(waits) != followWaits || len(turns) != followWaits+followHosts {
		t.Fatalf("%d turns wait, of %d", len(waits), len(turns))
	}
	u.time += directory.MaxWait
	u.ended(waits[0], turns[waits[0]], followAgain, u.time)
	if due := turns[waits[0]].due; due > u.time {
		t.Errorf("it has waited, and is due in %v", due-u.time)
	}
	u.ended(waits[1], turns[waits[1]], followAnswered, u.time)
	if due := turns[waits[1]].due; due != turns[waits[1]].begun+followEvery {
		t.Errorf("the host does not wait, and is due in %v", due-u.time)
	}
}

// Hosts that hang while they are to wait for news keep no other one from being asked, and those that
// have hung are asked again, so many at once.
func TestHangingWaitersHoldUpNoOther(t *testing.T) {
	u := newTurned(2 * followWaits)
	hung := map[node.ID]bool{}
	hangs := func(id node.ID) bool {
		if len(hung) < followWaits && u.of[id].waits {
			hung[id] = true
		}
		return hung[id]
	}
	most := 0
	for range 240 { // two minutes
		u.tick(hangs)
		most = max(most, len(u.under))
	}
	if len(hung) != followWaits || most > followWaits+followSilent {
		t.Errorf("%d hosts hang, %d at once", len(hung), most)
	}
	for id := range u.of {
		at := u.begun[id]
		for i := 1; i < len(at) && !hung[id]; i++ {
			if gap := at[i] - at[i-1]; gap >= directory.Fresh {
				t.Errorf("%s answers, and was asked %v after the last time", id, gap)
			}
		}
		if rest := u.time - at[len(at)-1]; rest >= time.Minute || !hung[id] && rest >= directory.Fresh {
			t.Errorf("%s is not asked any more, for %v", id, rest)
		}
	}
}

// A host that is too busy to answer is asked again within a second, however often it has said so: it
// is not one that is away, and what it tells counts for five seconds.
func TestBusyHostIsAskedAgainSoon(t *testing.T) {
	u := newTurned(1)
	for range 20 {
		id, turn := u.begin(u.time)
		if turn == nil {
			t.Fatalf("at %v the host is not asked", u.time)
		}
		u.ended(id, turn, howFollowed(false, fmt.Errorf("a poll: %w", ErrBusy)), u.time)
		u.time += 2 * followTick
	}
	for err, want := range map[error]followed{nil: followAnswered, ErrUnreachable: followFailed, directory.ErrNoNews: followFailed} {
		if got := howFollowed(false, err); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
	if got := howFollowed(true, nil); got != followAgain {
		t.Errorf("with news: %d", got)
	}
}
