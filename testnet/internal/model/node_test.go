package model

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// logbook is a watcher that remembers.
type logbook struct {
	ended   []*Ended
	refused []error
	started [][]dbadapter.Record
}

func (l *logbook) Started(_ int, r []dbadapter.Record)     { l.started = append(l.started, r) }
func (l *logbook) Observed(int, *dbadapter.Record)         {}
func (l *logbook) Holds(int, int)                          {}
func (l *logbook) Left(int, int, []dbadapter.Record)       {}
func (l *logbook) Restamping(int, []dbadapter.Write)       {}
func (l *logbook) Removing(int, []dbadapter.Write)         {}
func (l *logbook) Collected(int, *dbadapter.Record, []int) {}
func (l *logbook) Recovering(int, bool)                    {}
func (l *logbook) Heard(int, []dbadapter.Record)           {}
func (l *logbook) SetAside(int, *dbadapter.Record)         {}
func (l *logbook) Answered(*Question)                      {}
func (l *logbook) Ended(e *Ended)                          { l.ended = append(l.ended, e) }
func (l *logbook) Refused(_ int, err error)                { l.refused = append(l.refused, err) }
func (l *logbook) has(err error) bool {
	for _, e := range l.refused {
		if errors.Is(e, err) {
			return true
		}
	}
	return false
}

// cluster is a few nodes that are up and sync when told.
func cluster(t *testing.T, c Config) (*Cluster, *logbook) {
	t.Helper()
	book := &logbook{}
	c.Watch = book
	if c.Skew == 0 {
		c.Skew = time.Minute
	}
	w := sim.New(1)
	cl := New(w, sim.NewNet(w, sim.Behaviour{Delay: 10 * time.Millisecond}), c)
	for _, n := range cl.Nodes() {
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := cl.Found(true); err != nil {
		t.Fatal(err)
	}
	return cl, book
}

// put writes a record and waits until it is durable.
func put(t *testing.T, n *Node, key, value string) dbadapter.Version {
	t.Helper()
	var version dbadapter.Version
	told := false
	n.Write([]dbadapter.Record{{Key: []byte(key), Value: []byte(value)}}, func(_ int, v dbadapter.Version, err error) {
		if err != nil {
			t.Fatal(err)
		}
		version, told = v, true
	})
	n.world.Run(n.world.Now() + 10*time.Millisecond)
	if !told {
		t.Fatal("the write was not acknowledged")
	}
	return version
}

// sync runs a sync to its end.
func syncNow(t *testing.T, a *Node, b int) error {
	t.Helper()
	result := errors.New("the sync has not ended")
	a.Sync(b, node.Ask{}, func(err error) { result = err })
	a.world.Run(a.world.Now() + 30*time.Second)
	return result
}

func values(n *Node) (all []string) {
	for _, r := range n.Records() {
		if r.Deleted {
			all = append(all, string(r.Key)+" deleted")
		} else {
			all = append(all, string(r.Key)+"="+string(r.Value))
		}
	}
	return all
}

func want(t *testing.T, n *Node, all string) {
	t.Helper()
	if got := fmt.Sprint(values(n)); got != all {
		t.Errorf("node %d holds %s, want %s", n.number, got, all)
	}
}

func TestWriteDeleteSync(t *testing.T) {
	for _, signed := range []bool{false, true} {
		cl, book := cluster(t, Config{Nodes: 2, Signed: signed})
		a, b := cl.Node(0), cl.Node(1)
		put(t, a, "k", "one")
		put(t, b, "l", "two")
		var deleted error
		b.Delete([]byte("l"), func(_ int, _ dbadapter.Version, err error) { deleted = err })
		b.Delete([]byte("m"), func(_ int, _ dbadapter.Version, err error) {
			if !errors.Is(err, dbadapter.ErrNotFound) {
				t.Error(err)
			}
		})
		if err := syncNow(t, a, 1); err != nil || deleted != nil {
			t.Fatal(err, deleted)
		}
		for _, n := range cl.Nodes() {
			want(t, n, "[k=one l deleted]")
		}
		if len(book.ended) != 2 || !book.ended[0].Report.Verified || !book.ended[1].Report.Verified {
			t.Errorf("%+v", book.ended)
		}
	}
}

// The admission rejects a record whose signature is not its writer's.
func TestSignatures(t *testing.T) {
	cl, _ := cluster(t, Config{Nodes: 2, Signed: true})
	put(t, cl.Node(0), "k", "v")
	r := cl.Node(0).Records()[0]
	admit := func(r dbadapter.Record) wire.Reason {
		t.Helper()
		h, err := dbadapter.Hash(cl.Keys().Hasher, r)
		if err != nil {
			t.Fatal(err)
		}
		verdicts, err := cl.Node(1).process.set.Admit(t.Context(), cl.Node(0).id, 0, 0, []dbadapter.Hashed{h})()
		if err != nil {
			t.Fatal(err)
		}
		return verdicts[0].Reason
	}
	changed := r
	changed.Value = []byte("w")
	if reason := admit(changed); reason != wire.ReasonSignature {
		t.Errorf("a changed value: %v", reason)
	}
	changed.Version.Writer = 7
	if reason := admit(changed); reason != wire.ReasonWriter {
		t.Errorf("an unknown writer: %v", reason)
	}
	if reason := admit(r); reason != 0 {
		t.Errorf("the record as it was signed: %v", reason)
	}
}

// Clocks: a node rejects a version too far ahead, and admits it when its time has
// come and the sender's note of the refusal has expired.
func TestClocks(t *testing.T) {
	cl, book := cluster(t, Config{Nodes: 2})
	a, b := cl.Node(0), cl.Node(1)
	a.Skew(time.Hour)
	put(t, a, "k", "v")
	for range 2 {
		if err := syncNow(t, a, 1); !errors.Is(err, node.ErrRejected) {
			t.Fatal(err)
		}
	}
	if !book.has(hlc.ErrOutOfBounds) || len(values(b)) > 0 {
		t.Error("a version from the future was let in")
	}
	for _, e := range book.ended {
		if e.Report.Verified {
			t.Error("verified without it")
		}
	}
	cl.World.Skip(time.Hour)
	if err := syncNow(t, a, 1); err != nil {
		t.Fatal(err)
	}
	want(t, b, "[k=v]")
	a.StopClock(time.Second)
	at := a.wall.now()
	cl.World.Run(cl.World.Now() + 500*time.Millisecond)
	if got := a.wall.now(); !got.Equal(at) {
		t.Errorf("a clock that stands still says %s after %s", got, at)
	}
	cl.World.Run(cl.World.Now() + 1500*time.Millisecond)
	if got := a.wall.now().Sub(at); got != time.Second {
		t.Errorf("it has gone on by %s", got)
	}
	a.SetClock()
	a.Skew(-time.Hour) // less than what it holds by more than others would bear
	var refused error
	a.Write([]dbadapter.Record{{Key: []byte("l")}}, func(_ int, _ dbadapter.Version, err error) { refused = err })
	if !errors.Is(refused, hlc.ErrOutOfBounds) {
		t.Errorf("a write that every other node would decline: %v", refused)
	}
	a.SetClock()
	a.Skew(-30 * time.Second)
	a.Restamp() // its clock was an hour ahead in syncs, too: it has vouched for that hour
	if v := put(t, a, "l", "v"); v.Clock <= a.Records()[0].Version.Clock {
		t.Errorf("version %s", v)
	}
}

// A frozen process carries out its requests when it goes on.
func TestFreeze(t *testing.T) {
	cl, _ := cluster(t, Config{Nodes: 2})
	a, b := cl.Node(0), cl.Node(1)
	put(t, a, "k", "v")
	b.Freeze(5 * time.Second)
	told := time.Duration(0)
	b.Write([]dbadapter.Record{{Key: []byte("l")}}, func(int, dbadapter.Version, error) { told = cl.World.Now() })
	if err := syncNow(t, a, 1); err != nil {
		t.Error(err)
	}
	if told < 5*time.Second || len(values(b)) != 2 {
		t.Errorf("told at %s; %v", told, values(b))
	}
}

// Nodes of different versions refuse one another by name; two old ones sync.
func TestVersions(t *testing.T) {
	cl, _ := cluster(t, Config{Nodes: 3})
	put(t, cl.Node(0), "k", "v")
	if cl.Node(1).Speak(true) != nil || cl.Node(2).Speak(true) != nil {
		t.Fatal("no start")
	}
	if err := syncNow(t, cl.Node(0), 1); !errors.Is(err, reconcile.ErrVersion) {
		t.Error(err)
	}
	if err := syncNow(t, cl.Node(1), 0); !errors.Is(err, reconcile.ErrVersion) {
		t.Error(err)
	}
	if err := syncNow(t, cl.Node(2), 1); err != nil { // node 1 has not heard of node 2
		t.Error(err)
	}
	_ = cl.Node(1).Speak(false)
	if err := syncNow(t, cl.Node(0), 1); err != nil || len(values(cl.Node(1))) != 1 {
		t.Error(err)
	}
}

// A replay of old frames moves no records.
func TestReplay(t *testing.T) {
	cl, book := cluster(t, Config{Nodes: 2})
	a, b := cl.Node(0), cl.Node(1)
	put(t, a, "k", "old")
	put(t, b, "l", "x")
	if err := syncNow(t, a, 1); err != nil {
		t.Fatal(err)
	}
	put(t, a, "k", "new")
	b.Sync(0, node.Ask{}, nil)
	cl.World.Run(cl.World.Now() + 10*time.Second)
	before := len(book.ended)
	cl.Replay(0, 1)
	cl.World.Run(cl.World.Now() + time.Minute)
	want(t, b, "[k=new l=x]")
	if len(book.ended) != before+1 || !book.ended[before].Replayed || book.ended[before].Report.Applied != 0 {
		t.Errorf("%+v", book.ended[before:])
	}
}

// Two nodes that call one another at once do one of the two syncs first.
func TestCallsAtOnce(t *testing.T) {
	cl, book := cluster(t, Config{Nodes: 2})
	put(t, cl.Node(0), "k", "v")
	done := 0
	for i := range 2 {
		cl.Node(i).Sync(1-i, node.Ask{}, func(err error) {
			if err != nil {
				t.Error(err)
			}
			done++
		})
	}
	cl.World.Run(cl.World.Now() + time.Minute)
	if done != 2 || !book.has(reconcile.ErrBusy) {
		t.Errorf("%d syncs done; busy %v", done, book.has(reconcile.ErrBusy))
	}
}

// Background syncs make all nodes equal, also where each knows only a few others.
func TestBackground(t *testing.T) {
	for _, nodes := range []int{3, 20} {
		cl, _ := cluster(t, Config{Nodes: nodes, Every: time.Second})
		put(t, cl.Node(nodes-1), "k", "v")
		cl.World.Run(time.Minute)
		for _, n := range cl.Nodes() {
			want(t, n, "[k=v]")
		}
		cl.Rest()
		cl.World.Run(2 * time.Minute)
		for _, n := range cl.Nodes() {
			if n.Busy() {
				t.Errorf("node %d does not rest", n.number)
			}
		}
	}
}

// What a node wrote six hours ahead of its time reaches the others as soon as it is
// restamped, and stays restamped when the power fails.
func TestRestamp(t *testing.T) {
	c, book := cluster(t, Config{Nodes: 2, Signed: true})
	n := c.Node(1)
	n.Skew(6 * time.Hour)
	put(t, n, "k", "written six hours from now")
	n.Skew(-6 * time.Hour)
	n.Write([]dbadapter.Record{{Key: []byte("k")}}, func(_ int, _ dbadapter.Version, err error) {
		if !errors.Is(err, node.ErrFutureVersion) {
			t.Errorf("a write after it: %v", err)
		}
	})
	for _, restart := range []bool{false, true} {
		n.Restamp()
		if restart {
			n.Crash()
			if err := n.Start(); err != nil {
				t.Fatal(err)
			}
		}
		if ahead := n.Latest().Time().Sub(n.wall.now()); ahead > c.Skew {
			t.Errorf("the clock is %s ahead; refused %v", ahead, book.refused)
		}
		put(t, n, "l", "at once")
	}
	n.Sync(0, node.Ask{}, func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
	c.World.Run(c.World.Now() + time.Minute)
	if value, ok := c.Node(0).Get("k"); !ok || string(value) != "written six hours from now" {
		t.Errorf("the other node holds %q", value)
	}
}

// Shards have their hosts within seconds of the joins, and not only after a round of background
// syncs: the layout is stated when it is due, and the hosts say at once what they hold.
func TestShardsComeSoonAfterJoins(t *testing.T) {
	w := sim.New(1)
	cl := New(w, sim.NewNet(w, sim.Behaviour{Delay: 10 * time.Millisecond}), Config{
		Nodes: 4, Every: 10 * time.Minute, Push: true, Watch: &logbook{}, Skew: time.Minute,
		Rule: &placement.Rule{Kind: placement.Hash, Shards: 8, Replicas: 2},
	})
	for _, n := range cl.Nodes() {
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := cl.Found(false); err != nil {
		t.Fatal(err)
	}
	w.Run(time.Second)
	if n := len(cl.Node(0).Shards()); n != 8 {
		t.Errorf("the first node holds %d shards", n)
	}
	for i := 1; i < 4; i++ {
		cl.Node(i).Join(0, node.RoleWrite)
		w.Run(w.Now() + time.Second)
	}
	w.Run(w.Now() + 30*time.Second)
	held := map[int]int{}
	for _, n := range cl.Nodes() {
		for _, s := range n.Shards() {
			held[s]++
		}
		for s := range 8 {
			if holders := n.process.ns.Holders(placement.Shard(s)); len(holders) < 1 {
				t.Errorf("node %d knows no other holder of shard %d", n.number, s)
			}
		}
		r, err := n.process.ns.Replicas()
		if err != nil || r.Epoch < 2 || r.Short > 0 || r.Fetching > 0 || r.Dropping > 0 && n.number > 0 {
			t.Errorf("node %d: %+v, %v", n.number, r, err)
		}
	}
	for s := range 8 {
		if held[s] < 2 { // the first node leaves shards once it was found equal with their hosts
			t.Errorf("shard %d is held by %d nodes", s, held[s])
		}
	}
}
