package placement

import (
	"bytes"
	"crypto/ed25519"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/roster"
)

var (
	turnRule = &Rule{Kind: Hash, Shards: 16, Replicas: 2}
	noon     = time.Unix(1_800_000_000, 0)
)

// admins are the nodes of a namespace that see its list change, each with statements and
// tables of its own, and a network that can part them.
type admins struct {
	*rand.Rand
	t      *testing.T
	now    time.Time
	nodes  []*admin
	side   []int // of a partition
	stated int
}

type admin struct {
	id     roster.ID
	key    ed25519.PrivateKey
	set    *roster.Set
	tables map[roster.Table][]byte
	turn   Turn
	// stated and layout are what the node goes by.
	stated roster.StatedLayout
	layout *Layout
}

func newAdmins(t *testing.T, seed uint64, n int) *admins {
	w := &admins{Rand: rand.New(rand.NewPCG(seed, 51)), t: t, now: noon, side: make([]int, n)}
	placement, err := turnRule.Value()
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(i + 1)}, ed25519.SeedSize))
		id := roster.IDOf(key.Public().(ed25519.PublicKey))
		w.nodes = append(w.nodes, &admin{id: id, key: key, tables: map[roster.Table][]byte{}})
		w.nodes[i].set = roster.New(roster.Config{Creator: w.nodes[0].id, Placement: string(placement), Verify: ed25519.Verify})
	}
	w.say(0, roster.Statement{Kind: roster.Found, Policy: &roster.Policy{MaxSkew: time.Minute}, Placement: cbor.ByteString(placement)})
	for i := 1; i < n; i++ {
		w.say(0, roster.Statement{Kind: roster.Grant, Subject: w.nodes[i].id, Role: roster.RoleAdmin})
	}
	w.meet(1)
	return w
}

// say states something at a node, if the node may.
func (w *admins) say(i int, d roster.Statement) {
	a := w.nodes[i]
	value, err := roster.Make(a.set, d, a.id, dbadapter.TimestampAt(w.now), func(m []byte) ([]byte, error) { return ed25519.Sign(a.key, m), nil })
	if err != nil {
		return
	}
	if _, err := a.set.Add(value); err != nil {
		w.t.Fatal(err)
	}
}

// meet lets each pair that is not parted hear all from each other, at a rate.
func (w *admins) meet(rate float64) {
	for i, a := range w.nodes {
		for j, b := range w.nodes {
			if i == j || w.side[i] != w.side[j] || w.Float64() >= rate {
				continue
			}
			if a.set.Digest() != b.set.Digest() {
				a.set.Load(func(yield func([]byte) bool) {
					for _, value := range b.set.Values() {
						if !yield(value) {
							return
						}
					}
				})
			}
			// In order: a run is a function of its seed.
			for _, name := range slices.SortedFunc(maps.Keys(b.tables), func(x, y roster.Table) int { return bytes.Compare(x[:], y[:]) }) {
				if w.Float64() < 0.7 || rate == 1 { // a table comes after its statement
					a.tables[name] = b.tables[name]
				}
			}
		}
	}
}

func willing(roster.ID) bool { return true }

// place goes by the layout that counts, if it is later and its table is here, as internal/node
// does. All hosts are ready at once.
func (a *admin) place(t *testing.T) (s Standing) {
	next, _ := a.set.List().Layout()
	later := next.Epoch > a.stated.Epoch || next.Epoch == a.stated.Epoch && bytes.Compare(next.Statement[:], a.stated.Statement[:]) > 0
	if value, here := a.tables[next.Table]; later && here {
		l, err := Parse(value, turnRule)
		if err != nil {
			t.Fatal(err)
		}
		a.stated, a.layout, later = next, l, false
	}
	s = Standing{Layout: a.layout, Absent: later, Void: a.set.List().Overtaken()}
	if a.layout != nil {
		s.Ended, s.Under = a.layout.Moves(ready)
	}
	return s
}

func ready(Shard, quorum.Name, roster.ID) bool { return true }

// act lets the nodes do what is due.
func (w *admins) act() {
	for i, a := range w.nodes {
		list := a.set.List()
		if !list.Has(a.id, roster.RoleAdmin) {
			continue
		}
		var ids []roster.ID
		for _, m := range list.Members() {
			if m.Role == roster.RoleAdmin {
				ids = append(ids, m.ID)
			}
		}
		hosts := HostsOf(list, willing)
		s := a.place(w.t)
		at, due := a.turn.At(w.now, s, hosts, ids, a.id)
		if !due || w.now.Before(at) {
			continue
		}
		next, err := Next(turnRule, s.Layout, a.set.NextEpoch(), s.Absent || s.Void, hosts, ready)
		if err != nil {
			w.t.Fatal(err)
		}
		a.tables[next.Table()] = next.Value()
		w.say(i, roster.Statement{Kind: roster.Layout, Table: next.Table()})
		w.stated++
	}
}

func (w *admins) run(seconds int, rate float64) {
	for range seconds {
		w.now = w.now.Add(time.Second)
		w.meet(rate)
		w.act()
	}
}

// agree wants all admins to go by one layout, made for the hosts, in which nothing moves.
func (w *admins) agree() {
	w.t.Helper()
	want, _ := w.nodes[0].set.List().Layout()
	for i, a := range w.nodes {
		s := a.place(w.t)
		if a.stated != want || s.Layout == nil || s.Absent || s.Void || s.Ended+s.Under > 0 || !s.Layout.Suits(HostsOf(a.set.List(), willing)) {
			w.t.Errorf("node %d goes by epoch %d by %s, want epoch %d by %s: %+v", i, a.stated.Epoch, a.stated.By, want.Epoch, want.By, s)
		}
	}
}

// Where admins hear from one another, one of them states one layout for what has changed
// within a short time, and one that ends the moves.
func TestOneLayoutForManyChanges(t *testing.T) {
	w := newAdmins(t, 1, 5)
	w.run(2*60, 1)
	if w.agree(); w.stated != 1 {
		t.Errorf("%d layouts for the first hosts", w.stated)
	}
	for i := range 8 {
		w.say(1, roster.Statement{Kind: roster.Grant, Subject: host(i), Role: roster.RoleWrite})
		w.run(3, 1)
	}
	w.run(60, 1)
	if w.agree(); w.stated != 3 {
		t.Errorf("%d layouts for eight hosts", w.stated)
	}
	w.say(2, roster.Statement{Kind: roster.Grant, Subject: host(9), Role: roster.RoleRead}) // holds nothing
	w.run(60, 1)
	if w.stated != 3 {
		t.Error("a layout for a member that only reads")
	}
	w.say(2, roster.Statement{Kind: roster.Lapse, Subject: host(3)})
	w.run(60, 1)
	if w.agree(); w.stated != 5 {
		t.Errorf("%d layouts after a host has lapsed", w.stated)
	}
	// A stream of changes puts a layout off for a bounded time.
	for i := range 20 {
		w.say(1, roster.Statement{Kind: roster.Grant, Subject: host(20 + i), Role: roster.RoleWrite})
		w.run(6, 1)
	}
	if w.stated < 6 {
		t.Error("no layout while hosts go on coming")
	}
}

// Admins that are parted state layouts apart, remove hosts and one another, and come
// together: all have one layout then, which suits the hosts, and no more are stated.
func TestAdminsConverge(t *testing.T) {
	void := 0
	for seed := range uint64(40) {
		w := newAdmins(t, seed, 3+int(seed%3))
		for range 3 {
			for i := range w.side {
				w.side[i] = w.IntN(2)
			}
			for range 2 + w.IntN(4) {
				d := roster.Statement{Kind: roster.Grant, Subject: host(w.IntN(6)), Role: roster.RoleWrite}
				if w.IntN(3) == 0 {
					d = roster.Statement{Kind: roster.Remove, Subject: d.Subject}
				}
				i := w.IntN(len(w.nodes))
				if w.IntN(8) == 0 { // an admin, never the founder
					d = roster.Statement{Kind: roster.Remove, Subject: w.nodes[1+w.IntN(len(w.nodes)-1)].id}
					i = 0
				}
				w.say(i, d)
				w.run(w.IntN(40), 0.3)
			}
		}
		clear(w.side)
		w.meet(1)
		w.meet(1)
		w.run(4*60, 0.5)
		w.meet(1)
		before := w.stated
		if w.run(10*60, 0.5); w.stated != before {
			t.Errorf("%d more layouts are stated", w.stated-before)
		}
		for _, v := range w.nodes[0].set.List().Voided() {
			if v.Kind == roster.Layout {
				void++
			}
		}
		if w.agree(); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if void == 0 {
		t.Error("no layout became void")
	}
}

// A statement whose table does not come is replaced after a while.
func TestATableThatDoesNotCome(t *testing.T) {
	w := newAdmins(t, 1, 3)
	w.run(2*60, 1)
	w.say(1, roster.Statement{Kind: roster.Layout, Table: roster.Table{1}})
	w.run(30, 1)
	if w.stated != 1 {
		t.Error("the table was not waited for")
	}
	w.run(2*60, 1)
	if w.agree(); w.stated != 2 {
		t.Errorf("%d layouts", w.stated)
	}
}
