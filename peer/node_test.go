package peer_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

func TestMain(m *testing.M) {
	playNetnsRole()
	goleak.VerifyTestMain(m)
}

var (
	open, shut, create, join         = peer.OpenForTest, peer.ShutForTest, peer.CreateForTest, peer.JoinForTest
	notes, items, gathered, metricOf = peer.Notes, peer.Items, peer.Gathered, peer.MetricOf
	must, eventually                 = peer.Must, peer.Eventually
)

// testClock is a clock that tests turn by hand.
type testClock struct {
	mu sync.Mutex
	t  time.Time
}

func newTestClock() *testClock {
	return &testClock{t: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func (c *testClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *testClock) turn(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// errOf is the error of a call whose result the test does not need.
func errOf[T any](_ T, err error) error { return err }

// pair is two nodes in one namespace; b joined a, with the role write.
func pair(t *testing.T, a, b peer.Config, p peer.Policy) (na, nb *peer.Node, sa, sb *peer.Namespace) {
	t.Helper()
	na, nb = open(t, a), open(t, b)
	sa = create(t, na, p)
	return na, nb, sa, join(t, sa, nb, peer.RoleWrite)
}

// listed is the list of members, without what is each node's own of it.
func listed(ns *peer.Namespace) string {
	members := ns.Members()
	for i := range members {
		members[i].Synced, members[i].Verified = time.Time{}, time.Time{}
	}
	return fmt.Sprint(members)
}

func put(t *testing.T, ns *peer.Namespace, key, value string) dbadapter.Version {
	t.Helper()
	v, err := ns.Put(t.Context(), []byte(key), []byte(value))
	must(t, err)
	return v
}

// contents is everything in a namespace, versions and tombstones included.
func contents(t *testing.T, ns *peer.Namespace) map[string]string {
	t.Helper()
	all := map[string]string{}
	for r, err := range ns.Scan(t.Context(), nil, peer.WithTombstones()) {
		must(t, err)
		all[string(r.Key)] = fmt.Sprintf("%s %t %q %d %v", r.Version, r.Deleted, r.Value, r.Expires, r.Replaces)
	}
	return all
}

func equal(t *testing.T, a, b *peer.Namespace) {
	t.Helper()
	if ca, cb := contents(t, a), contents(t, b); !maps.Equal(ca, cb) {
		t.Errorf("the sets differ:\n%v\n%v", ca, cb)
	}
	if da, db := a.Info().Digest, b.Info().Digest; da != db {
		t.Errorf("the digests differ: %s, %s", da, db)
	}
}

func sync1(t *testing.T, ns *peer.Namespace, id peer.ID) reconcile.Report {
	t.Helper()
	r, err := ns.Sync(t.Context(), id, peer.SyncOptions{})
	if err != nil {
		t.Fatalf("sync: %v (report %+v)", err, r)
	}
	if !r.Verified {
		t.Fatalf("not verified: %+v", r)
	}
	return r
}

// onBothStores runs a test with nodes in memory, and with nodes in folders.
func onBothStores(t *testing.T, test func(t *testing.T, a, b peer.Config)) {
	t.Run("memdb", func(t *testing.T) { test(t, peer.Config{}, peer.Config{}) })
	t.Run("ondisk", func(t *testing.T) {
		test(t, peer.Config{Dir: t.TempDir()}, peer.Config{Dir: t.TempDir()})
	})
}

func TestPutSyncGet(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, a, b peer.Config) {
		na, nb, sa, sb := pair(t, a, b, peer.Policy{})
		for i := range 50 {
			put(t, sa, fmt.Sprintf("a%d", i), "from a")
			put(t, sb, fmt.Sprintf("b%d", i), "from b")
		}
		r := sync1(t, sb, na.ID())
		if r.MissingHere != 50 || r.MissingThere != 50 || r.Mismatched != 0 || r.Applied != 50 || r.Sent != 50 {
			t.Errorf("report %+v", r)
		}
		if r.WireBytesSent == 0 || r.WireBytesReceived == 0 || len(r.StepsMS) != 6 || r.Namespace != "notes" || r.Peer != na.ID().String() {
			t.Errorf("report %+v", r)
		}
		equal(t, sa, sb)
		// The other way round, with changes and deletions on both sides.
		put(t, sa, "b1", "changed by a")
		put(t, sb, "a1", "changed by b")
		must(t, errOf(sa.Delete(t.Context(), []byte("b2"))))
		must(t, errOf(sb.Delete(t.Context(), []byte("a2"))))
		if r := sync1(t, sa, nb.ID()); r.Mismatched != 4 || r.MissingHere+r.MissingThere != 0 {
			t.Errorf("report %+v", r)
		}
		equal(t, sa, sb)
		rec, err := sb.Get(t.Context(), []byte("b1"))
		if err != nil || string(rec.Value) != "changed by a" {
			t.Errorf("get: %q, %v", rec.Value, err)
		}
		rec, err = sa.Get(t.Context(), []byte("a2"))
		if !errors.Is(err, peer.ErrDeleted) || rec.Version.IsZero() {
			t.Errorf("get a tombstone: %v, %v", rec, err)
		}
		if _, err := sa.Get(t.Context(), []byte("absent")); !errors.Is(err, peer.ErrNotFound) {
			t.Errorf("get nothing: %v", err)
		}
		if r := sync1(t, sa, nb.ID()); r.Method != wire.MethodSame || r.Differences() != 0 {
			t.Errorf("a sync of equal sets: %+v", r)
		}
	})
}

// A sync makes a reading of the clock durable that is ahead of it; what is shown is
// the time of a record.
func TestClockIsOfTheNewestVersion(t *testing.T) {
	onBothStores(t, func(t *testing.T, a, b peer.Config) {
		na, _, sa, sb := pair(t, a, b, peer.Policy{})
		v := put(t, sa, "key", "value")
		sync1(t, sb, na.ID())
		for _, ns := range []*peer.Namespace{sa, sb} {
			if clock := ns.Info().Clock; !clock.Equal(v.Clock.Time()) {
				t.Errorf("the clock shown is %s, the record's %s", clock, v.Clock.Time())
			}
		}
	})
}

func TestDiffChangesNothing(t *testing.T) {
	_, nb, sa, sb := pair(t, peer.Config{}, peer.Config{}, peer.Policy{})
	put(t, sa, "a", "1")
	put(t, sb, "b", "2")
	before := contents(t, sa)
	r, err := sa.Diff(t.Context(), nb.ID(), peer.SyncOptions{})
	if err != nil || r.MissingHere != 1 || r.MissingThere != 1 || r.ForecastBytes == 0 {
		t.Errorf("diff: %+v, %v", r, err)
	}
	if !maps.Equal(before, contents(t, sa)) {
		t.Error("a dry run changed something")
	}
}

func TestPrefixAndDirection(t *testing.T) {
	_, nb, sa, sb := pair(t, peer.Config{}, peer.Config{}, peer.Policy{})
	put(t, sa, "x/a", "1")
	put(t, sa, "y/a", "2")
	put(t, sb, "x/b", "3")
	put(t, sb, "y/b", "4")
	pull := peer.SyncOptions{Prefix: []byte("x/"), Direction: wire.Pull}
	if r, err := sa.Sync(t.Context(), nb.ID(), pull); err != nil || r.Applied != 1 || r.Sent != 0 {
		t.Fatalf("pull: %+v, %v", r, err)
	}
	if got := contents(t, sa); len(got) != 3 || got["x/b"] == "" {
		t.Errorf("after a pull of x/: %v", got)
	}
	if got := contents(t, sb); len(got) != 2 {
		t.Errorf("a pull has pushed: %v", got)
	}
	push := peer.SyncOptions{Direction: wire.Push}
	if r, err := sa.Sync(t.Context(), nb.ID(), push); err != nil || r.Applied != 0 || r.Sent != 2 {
		t.Fatalf("push: %+v, %v", r, err)
	}
	if got := contents(t, sb); len(got) != 4 {
		t.Errorf("after a push: %v", got)
	}
	for _, bad := range []peer.SyncOptions{{Direction: 7}, {Method: wire.MethodSame}, {Prefix: bytes.Repeat([]byte("x"), 2000)}} {
		if _, err := sa.Sync(t.Context(), nb.ID(), bad); err == nil {
			t.Errorf("options %+v were taken", bad)
		}
	}
}

func TestConflictOneWinner(t *testing.T) {
	na, nb, sa, sb := pair(t, peer.Config{}, peer.Config{}, peer.Policy{})
	v := put(t, sa, "k", "first")
	sync1(t, sa, nb.ID())
	early, err := sa.PutIf(t.Context(), []byte("k"), []byte("by a"), v)
	must(t, err)
	late, err := sb.PutIf(t.Context(), []byte("k"), []byte("by b"), v)
	must(t, err)
	sync1(t, sb, na.ID())
	equal(t, sa, sb)
	winner := late
	if early.Compare(late) > 0 { // within one millisecond, by writer
		winner = early
	}
	if rec, err := sa.Get(t.Context(), []byte("k")); err != nil || rec.Version != winner {
		t.Errorf("the winner is %v, %v, not %s", rec, err, winner)
	}
	if _, err := sa.PutIf(t.Context(), []byte("k"), []byte("too late"), v); !errors.Is(err, peer.ErrConflict) {
		t.Errorf("PutIf of an old version: %v", err)
	}
	if _, err := sa.PutIf(t.Context(), []byte("k"), nil, dbadapter.Version{}); !errors.Is(err, peer.ErrConflict) {
		t.Errorf("PutIf absent: %v", err)
	}
}
