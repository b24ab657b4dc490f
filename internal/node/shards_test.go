package node

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

var byHash = &placement.Rule{Kind: placement.Hash, Shards: 16, Replicas: 2}

// shardCrew are machines that share a namespace that is cut into shards, each of which
// holds the shards that the test says.
type shardCrew struct {
	*crew
	held [][]placement.Shard
}

func newShardCrew(t *testing.T, held ...[]placement.Shard) *shardCrew {
	c := &shardCrew{&crew{t: t}, held}
	for i := range held {
		m := newMachine(i + 1)
		var (
			secret dbadapter.Secret
			state  *State
		)
		if i == 0 {
			secret = m.NewSecret()
			state = must(m.FoundShards(secret, "notes", Policy{}, byHash))
		} else {
			joined := must(m.redeem(c.machines[0], invite(c.ns[0], RoleWrite)))
			secret, state = joined.Secret, joined.State
		}
		for _, shard := range held[i] {
			state.addShard(shard)
			at, _ := state.find(shard)
			state.Shards[at].Watermark.Recovering = false // all are founders
		}
		c.machines, c.ns = append(c.machines, m), append(c.ns, must(m.open(secret, state)))
	}
	for i := range c.ns {
		c.host(i)
	}
	return c
}

// host makes those that hold a shard its hosts, for a machine that knows no layout.
func (c *shardCrew) host(i int) {
	for _, set := range c.ns[i].Sets() {
		row := &quorum.Row{Shard: uint16(set.shard), Epoch: 1}
		for j, held := range c.held {
			if slices.Contains(held, set.shard) {
				row.New = append(row.New, c.machines[j].ID)
			}
		}
		slices.Sort(row.New)
		row.Old = row.New
		set.tenure.goes(row)
	}
}

// set is a machine's set of a shard.
func (c *shardCrew) set(i int, shard placement.Shard) *Set {
	c.t.Helper()
	at := slices.IndexFunc(c.ns[i].Sets(), func(s *Set) bool { return s.Shard() == shard })
	if at < 0 {
		c.t.Fatalf("%d holds no shard %d", i, shard)
	}
	return c.ns[i].Sets()[at]
}

// keyIn is a key of a shard that begins so.
func (c *shardCrew) keyIn(shard placement.Shard, begins string) string {
	key := begins
	for i := 0; c.ns[0].Home([]byte(key)) != shard; i++ {
		key = fmt.Sprint(begins, ", ", i)
	}
	return key
}

func (c *shardCrew) put(i int, shard placement.Shard, key string) dbadapter.Version {
	c.t.Helper()
	return must(commit(c.set(i, shard).Write(draft(key, "value"))))
}

func (c *shardCrew) keys(i int, shard placement.Shard) (keys []string) {
	c.t.Helper()
	snap := must(c.set(i, shard).Store.Snapshot())
	defer snap.Close()
	for r, err := range snap.Scan(c.t.Context(), nil, nil) {
		keys = append(keys, string(must(r, err).Key))
	}
	return keys
}

// sync syncs a shard, with the control namespace before it.
func (c *shardCrew) sync(i, j int, shard placement.Shard) error {
	c.pass(time.Second)
	set, other := c.set(i, shard), c.machines[j]
	if _, _, err := c.machines[i].syncPart(&c.ns[i].Control, other, syncing.Ask{}); err != nil && !errors.Is(err, syncing.ErrRejected) { // the table of before
		return err
	}
	_, _, err := c.machines[i].syncPart(&set.Part, other, syncing.Ask{})
	if errors.Is(err, reconcile.ErrBusy) { // one of the two has collected first
		_, _, err = c.machines[i].syncPart(&set.Part, other, syncing.Ask{})
	}
	return err
}

// rounds lets all tend, and sync all that two of them hold.
func (c *shardCrew) rounds(n int) {
	c.t.Helper()
	for range n {
		for i := range c.machines {
			for j := range c.machines {
				for _, shard := range c.held[i] {
					if i != j && slices.Contains(c.held[j], shard) {
						if err := c.sync(i, j, shard); err != nil {
							c.t.Fatalf("%d syncs shard %d with %d: %v", i, shard, j, err)
						}
					}
				}
			}
			succeeds(c.t, c.machines[i].Tend(c.t.Context()))
		}
	}
}

// reopen closes a machine's namespace, and opens it with the state that was saved.
func (c *shardCrew) reopen(i int) {
	c.t.Helper()
	state := must(DecodeState(must(c.ns[i].state.Load().Encode())))
	succeeds(c.t, c.ns[i].Close())
	c.machines[i].Forget(c.ns[i])
	c.ns[i] = must(c.machines[i].open(c.ns[i].secret, state))
	c.host(i)
}

// Three machines hold different ones of three shards. Each shard is synced by itself, and
// only with a machine that holds it; the list of members, the clock and the tickets are one.
func TestShardsAreSetsOfTheirOwn(t *testing.T) {
	c := newShardCrew(t, []placement.Shard{0, 1, 2}, []placement.Shard{0, 1}, []placement.Shard{0, 2})
	var last dbadapter.Version
	of := func(shard placement.Shard) string { return c.keyIn(shard, "of") }
	ids := map[dbadapter.NamespaceID]bool{c.ns[0].id: true, c.ns[0].Control.Keys.ID: true}
	for shard := range placement.Shard(3) {
		if v := c.put(0, shard, of(shard)); v.Clock <= last.Clock {
			t.Errorf("the clock of shard %d goes back", shard)
		} else {
			last = v
		}
		ids[c.set(0, shard).Keys.ID] = true
	}
	if len(ids) != 5 {
		t.Errorf("%d ids of five sets", len(ids))
	}
	if err := c.sync(1, 0, 1); err != nil || c.keys(1, 0) != nil || !slices.Equal(c.keys(1, 1), []string{of(1)}) {
		t.Errorf("%v: shard 0 has %q, shard 1 has %q", err, c.keys(1, 0), c.keys(1, 1))
	}
	wantErr(t, c.sync(0, 2, 1), ErrDenied, "a sync of a shard that the peer does not hold")
	c.rounds(2)
	for i, held := range c.held {
		for _, shard := range held {
			if got := c.keys(i, shard); !slices.Equal(got, []string{of(shard)}) {
				t.Errorf("%d has %q of shard %d", i, got, shard)
			}
		}
		if c.ns[i].Members().Digest() != c.ns[0].Members().Digest() {
			t.Errorf("%d has another list of members", i)
		}
	}
	// A record is signed for its shard, and is not another one's.
	snap := must(c.set(0, 1).Store.Snapshot())
	defer snap.Close()
	r := must(snap.Get([]byte(of(1))))
	if c.set(1, 0).Signed(c.machines[0].ID, &r) {
		t.Error("its signature is one of another shard, too")
	}
	for shard, want := range []wire.Reason{0: wire.ReasonWriter, 1: 0} {
		set := c.set(1, placement.Shard(shard))
		verdicts, err := set.Admit(t.Context(), c.machines[0].ID, 0, noTerm, []dbadapter.Hashed{must(dbadapter.Hash(set.Keys.Hasher, r))})()
		if err != nil || verdicts[0].Reason != want || set.RejectedCount() != min(int(want), 1) {
			t.Errorf("to shard %d: %+v, %v, %d rejections", shard, verdicts[0], err, set.RejectedCount())
		}
	}
}

// What a member pledges, and what a node collects, is of one shard. While no layout says who
// the hosts are, a shard waits for all members: each may hold it.
func TestShardsAreCollectedApart(t *testing.T) {
	c := newShardCrew(t, []placement.Shard{0, 1}, []placement.Shard{0, 1}, []placement.Shard{0})
	for shard := range placement.Shard(2) {
		key := c.keyIn(shard, "k")
		c.put(0, shard, key)
		must(commit(c.set(0, shard).Delete([]byte(key))))
	}
	c.rounds(6)
	if _, _, err := c.ns[0].Layout(); !errors.Is(err, ErrNoLayout) {
		t.Fatal(err)
	}
	for i := range c.machines {
		if got := c.keys(i, 0); got != nil {
			t.Errorf("%d holds %q of shard 0: %+v", i, got, c.set(i, 0).Collection())
		}
		floor, want := c.set(i, 0).gc.State().Floor, c.ns[i].state.Load().Shards[0].Watermark.Floor
		if floor == 0 || floor != want {
			t.Errorf("%d has floor %d, and %d in its state", i, floor, want)
		}
	}
	for i := range 2 {
		if got := c.keys(i, 1); !slices.Equal(got, []string{c.keyIn(1, "k")}) || c.set(i, 1).gc.State().Floor != 0 {
			t.Errorf("%d has collected shard 1, of which one member says nothing: %q", i, got)
		}
		if waits := c.set(i, 1).Collection().Waiting; waits != 1 {
			t.Errorf("%d: %d records wait in shard 1", i, waits)
		}
	}
	pledges := map[string]bool{}
	for _, r := range controlRecords(c.ns[2]) {
		if r.Key[0] == kindPledge {
			by, shard := c.ns[2].about(r.Key)
			pledges[fmt.Sprint(slices.IndexFunc(c.machines, func(m *machine) bool { return m.ID == by }), " of ", shard)] = true
		}
	}
	if want := map[string]bool{"0 of 0": true, "1 of 0": true, "2 of 0": true, "0 of 1": true, "1 of 1": true}; !reflect.DeepEqual(pledges, want) {
		t.Errorf("pledges %v", pledges)
	}
}

// Once the members have said which shards they hold, a shard waits for its hosts alone.
func TestShardIsCollectedByItsHosts(t *testing.T) {
	w := newMovers(t, 3, 4)
	w.settle()
	for n := range 20 {
		for i := range w.all {
			w.put(i, fmt.Sprint("k", n))
		}
	}
	deleted := 0
	for key := range w.acked {
		for _, m := range w.all {
			if set := m.held(w.home(key)); set != nil && m.has(w.home(key), key, w.acked[key]) {
				must(commit(set.Delete([]byte(key))))
				deleted++
				break
			}
		}
	}
	clear(w.acked)
	w.settle()
	if deleted < 10 {
		t.Errorf("%d deletes say little", deleted)
	}
	promised := map[placement.Shard]dbadapter.Timestamp{}
	for i, m := range w.all {
		for _, set := range m.ns.Sets() {
			promised[set.shard] = max(promised[set.shard], set.gc.State().Pledged)
			if _, records, _ := set.Live.State(); records != 0 {
				t.Errorf("%d still holds %d records of shard %d: %+v", i, records, set.shard, set.Collection())
			}
		}
		held := (*w.all[0].ns.heldBy.Load())[m.ID]
		for s := range placement.Shard(w.rule.Shards) {
			if bit(held.Shards, s) != (m.held(s) != nil) {
				t.Errorf("%d has said of shard %d that it holds it: %v", i, s, bit(held.Shards, s))
			}
		}
	}
	// One that comes to hold a shard promises as much: it imports nothing with an older date.
	for s := range placement.Shard(w.rule.Shards) {
		if w.all[3].held(s) == nil && promised[s] > 0 {
			if set := w.all[3].lateHost(t, s); set.gc.State().Pledged < promised[s] {
				t.Errorf("shard %d: %d is promised, and a new host takes over %d", s, promised[s], set.gc.State().Pledged)
			}
			return
		}
	}
	t.Error("no shard that it does not hold has a promise")
}

// Each shard goes on after a restart where it was; what is lost is regained shard by shard.
func TestShardsAfterRestarts(t *testing.T) {
	c := newShardCrew(t, []placement.Shard{0, 1, 2}, []placement.Shard{0, 1}, []placement.Shard{0, 1, 2})
	for shard := range placement.Shard(3) {
		c.put(0, shard, c.keyIn(shard, "k"))
	}
	c.rounds(4)
	before := c.ns[1].state.Load().clone()
	c.reopen(1)
	after := c.ns[1].state.Load()
	if !reflect.DeepEqual(before.Shards, after.Shards) {
		t.Errorf("%+v, and before %+v", after.Shards, before.Shards)
	}
	if c.ns[1].OtherStore() || !slices.Equal(c.keys(1, 1), []string{c.keyIn(1, "k")}) {
		t.Errorf("after a restart: %q, %+v", c.keys(1, 1), after.Shards)
	}
	recovers := func(shard placement.Shard) bool { return c.set(1, shard).Collection().Recovering }
	if recovers(0) || recovers(1) {
		t.Error("after a restart it recovers")
	}
	c.machines[1].restored = true
	c.reopen(1)
	if !recovers(0) || !recovers(1) || !c.ns[1].OtherStore() {
		t.Error("with a store that was restored, it does not recover")
	}
	for _, one := range []struct {
		with  int
		after time.Duration
		want  bool // still
	}{{0, 0, true}, {2, 0, true}, {0, quorum.LongestDeadline, true}, {2, 0, false}} {
		c.pass(one.after)
		succeeds(t, c.sync(1, one.with, 1))
		if !recovers(0) || recovers(1) != one.want {
			t.Errorf("after a sync of shard 1 with %d: shard 0 recovers %v, shard 1 %v", one.with, recovers(0), recovers(1))
		}
	}
}

// The id of a namespace that is cut into shards is made of its placement; a state that says
// otherwise is damaged, and one of a program that knows more is refused.
func TestShardedState(t *testing.T) {
	m := newMachine(1)
	secret := m.NewSecret()
	s := must(m.FoundShards(secret, "notes", Policy{}, byHash))
	s.addShard(7)
	s.addShard(3)
	s.addShard(7)
	ns := must(m.open(secret, s))
	if ns.ID() == dbadapter.NamespaceIDOf(secret, s.Creator) || ns.Members().Placement() != string(s.Placement) {
		t.Error("its id is that of a namespace without shards")
	}
	var parts []dbadapter.NamespaceID
	for _, keys := range s.Parts(secret) {
		parts = append(parts, keys.ID)
	}
	if want := []dbadapter.NamespaceID{reconcile.DeriveShardKeys(secret, s.Root(), 3).ID, reconcile.DeriveShardKeys(secret, s.Root(), 7).ID, ns.Control.Keys.ID}; !slices.Equal(parts, want) {
		t.Errorf("parts %x, want %x", parts, want)
	}
	for name, c := range map[string]struct {
		edit func(*State)
		want error
	}{
		"as it is":               {func(*State) {}, nil},
		"without shards":         {func(s *State) { s.Shards = nil }, nil},
		"a newer format":         {func(s *State) { s.Format = StateFormat + 2 }, dbadapter.ErrFormat},
		"without a placement":    {func(s *State) { s.Placement = nil }, dbadapter.ErrCorrupt},
		"shards of no placement": {func(s *State) { s.Placement = nil }, dbadapter.ErrCorrupt},
		"a placement of nothing": {func(s *State) { s.Placement = []byte{0x80} }, dbadapter.ErrCorrupt},
		"a placement of before":  {func(s *State) { s.Placement = []byte{0x83, 3, 16, 2} }, dbadapter.ErrFormat},
		"a shard too many":       {func(s *State) { s.Shards[1].Shard = 16 }, dbadapter.ErrCorrupt},
		"a shard twice":          {func(s *State) { s.Shards[0].Shard = 7 }, dbadapter.ErrCorrupt},
		"half a log":             {func(s *State) { s.Shards[0].Log = make([]byte, 4) }, dbadapter.ErrCorrupt},
		"two logs":               {func(s *State) { s.Logs = make([]byte, 2*logSize) }, dbadapter.ErrCorrupt},
		"holds without bound":    {func(s *State) { s.Shards[1].Watermark.Holds = make([]watermark.Hold, watermark.MaxHolds+1) }, dbadapter.ErrCorrupt},
	} {
		edited := ns.state.Load().clone()
		c.edit(edited)
		if _, err := DecodeState(must(edited.Encode())); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantErr(t, second(m.FoundShards(secret, "notes", Policy{}, &placement.Rule{Kind: placement.Hash, Shards: 3, Replicas: 1})), ErrInvalid, "three shards")
}

// A record whose key belongs to another shard stays outside, whoever brings it: a look-up
// would never come to it.
func TestKeysOfOtherShardsAreDeclined(t *testing.T) {
	c := newShardCrew(t, []placement.Shard{0, 1}, []placement.Shard{0, 1})
	own, other := c.keyIn(0, "key"), c.keyIn(1, "key")
	c.put(0, 0, own)
	c.put(0, 0, other) // as a member might that runs another program
	if err := c.sync(1, 0, 0); !errors.Is(err, syncing.ErrRejected) || !slices.Equal(c.keys(1, 0), []string{own}) {
		t.Errorf("%v: shard 0 has %q", err, c.keys(1, 0))
	}
	if list := c.set(1, 0).Rejected(); len(list) != 1 || string(list[0].Key) != other {
		t.Errorf("refused: %+v", list)
	}
}
