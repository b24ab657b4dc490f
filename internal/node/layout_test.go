package node

import (
	"crypto/ed25519"
	"crypto/sha512"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// shards makes a namespace of shards, of which the machine is the admin.
func (m *machine) shards(name string) *Namespace {
	secret := m.NewSecret()
	return must(m.open(secret, must(m.FoundShards(secret, name, Policy{}, byHash))))
}

func (ns *Namespace) tended(t *testing.T) {
	t.Helper()
	succeeds(t, second(ns.Tend(t.Context())))
}

// hearing syncs until the other side has the control namespace that this one has, but for
// tables that count no longer, which each drops when it tends.
func hearing(t *testing.T, from *machine, ns *Namespace, to *machine) {
	t.Helper()
	for range 2 {
		if _, _, err := from.syncPart(&ns.Control, to, syncing.Ask{}); err != nil && !errors.Is(err, syncing.ErrRejected) {
			t.Fatal(err)
		}
	}
}

// A member's join tells how the namespace is cut; layouts reach the members with their
// tables, of which only the one that counts is kept.
func TestLayoutReachesMembers(t *testing.T) {
	a, b, c := newMachine(1), newMachine(2), newMachine(3)
	sa := a.shards("notes")
	wantErr(t, third(sa.Layout()), dbadapter.ErrNotFound, "before the first one")
	sa.tended(t)
	first, stated, err := sa.Layout()
	if err != nil || stated.Epoch != 1 || !slices.Equal(first.Hosts(3), []ID{a.ID}) {
		t.Fatalf("the founder's: %+v, %v", stated, err)
	}
	sb := must(b.join(a, invite(sa, RoleAdmin)))
	sc := must(c.join(a, invite(sa, RoleWrite)))
	if sc.Rule().Shards != 16 || sb.ID() != sa.ID() {
		t.Errorf("%+v", sc.Rule())
	}
	hearing(t, a, sa, b)
	for _, m := range []*machine{a, b, c} {
		m.clock = m.clock.Add(time.Second)
	}
	for _, ns := range []*Namespace{sa, sb} {
		ns.tended(t) // hears that hosts came
	}
	for _, m := range []*machine{a, b, c} {
		m.clock = m.clock.Add(time.Minute)
	}
	for _, ns := range []*Namespace{sa, sb, sc} { // two admins state the same, apart
		ns.tended(t)
	}
	hearing(t, a, sa, b)
	hearing(t, c, sc, a)
	hearing(t, b, sb, c)
	want, stated, err := sa.Layout()
	if err != nil || stated.Epoch != 2 || !want.Suits(placement.HostsOf(sa.Members().List, func(ID) bool { return true })) {
		t.Fatalf("%+v, %v", stated, err)
	}
	for _, ns := range []*Namespace{sa, sb, sc} {
		ns.tended(t)
		got, by, err := ns.Layout()
		if err != nil || by != stated || got.Table() != want.Table() || len(got.Hosts(0)) != 2 {
			t.Errorf("%+v, %v", by, err)
		}
		tables := 0
		for _, r := range controlRecords(ns) {
			if r.Key[0] == kindTable {
				tables++
			}
		}
		if tables != 1 {
			t.Errorf("%d tables are kept", tables)
		}
	}
}

// A founder holds its shards when it was tended once, and is sure at once of what they do not
// hold: no other node can have held anything.
func TestFounderHoldsAtOnce(t *testing.T) {
	sa := newMachine(1).shards("notes")
	sa.tended(t)
	take, _ := sa.Moves()
	for _, shard := range take {
		if set := must(sa.TakeShard(t.Context(), shard)); set.Recovers() {
			t.Errorf("it is not sure of shard %d: %+v", shard, set.Collection())
		}
	}
	if len(take) != byHash.Shards {
		t.Errorf("it takes %d shards of %d", len(take), byHash.Shards)
	}
}

// A table that no statement names, a damaged one, and one that is dressed up stay outside.
func TestTableAdmission(t *testing.T) {
	a := newMachine(1)
	sa := a.shards("notes")
	sa.tended(t)
	l, _, err := sa.Layout()
	if err != nil {
		t.Fatal(err)
	}
	good := must(sa.Control.table(l.Value()))
	other := must(sa.Control.table(must(placement.Plan(byHash, []ID{idOf(7)})).Value()))
	edited := func(edit func(*dbadapter.Record)) dbadapter.Hashed {
		r := good.Record.Clone()
		edit(&r)
		return must(dbadapter.Hash(sa.Control.Keys.Hasher, r))
	}
	for name, c := range map[string]struct {
		record dbadapter.Hashed
		in     bool
	}{
		"good":           {good, true},
		"another":        {other, false},
		"another value":  {edited(func(r *dbadapter.Record) { r.Value = other.Value }), false},
		"another key":    {edited(func(r *dbadapter.Record) { r.Key = tableKey(roster.Table{1}) }), false},
		"a short key":    {edited(func(r *dbadapter.Record) { r.Key = r.Key[:1] }), false},
		"a later one":    {edited(func(r *dbadapter.Record) { r.Version.Clock++ }), false},
		"another writer": {edited(func(r *dbadapter.Record) { r.Version.Writer = 7 }), false},
		"deleted":        {edited(func(r *dbadapter.Record) { r.Value, r.Deleted = nil, true }), false},
	} {
		verdicts, err := sa.Admit(t.Context(), idOf(3), []dbadapter.Hashed{c.record})
		if err != nil || (verdicts[0].Reason == 0) != c.in {
			t.Errorf("%s: %+v, %v", name, verdicts[0], err)
		}
	}
}

// A namespace of one shard has no layout, and takes no tables.
func TestOneShard(t *testing.T) {
	ns := newMachine(1).create("notes", Policy{})
	ns.tended(t)
	if _, _, err := ns.Layout(); !errors.Is(err, ErrOneShard) || !errors.Is(err, ErrInvalid) {
		t.Errorf("%v", err)
	}
}

// Rows never go back: a node goes on by a layout that has become void, also after a restart, and takes
// none that is void when it first hears of it. An admin's node that sees it states the next one, which
// is later, and in which each row is new.
func TestRowsNeverGoBack(t *testing.T) {
	w := newMovers(t, 1, 4)
	w.settle()
	w.settled()
	hear := func(all ...int) {
		for range 3 {
			for _, i := range all {
				for _, j := range all {
					if i != j {
						_, _, _ = w.all[i].syncPart(&w.all[i].ns.Control, w.all[j].machine, syncing.Ask{})
					}
				}
			}
		}
	}
	_, before, _ := w.all[0].ns.Layout()
	// Admin 1 has member 3 host no more, apart from its own removal; member 2 hears of it.
	succeeds(t, w.all[1].ns.SetRole(t.Context(), w.all[3].ID, RoleRead, time.Time{}, false))
	succeeds(t, w.all[0].ns.Remove(t.Context(), w.all[1].ID, false))
	for range 8 {
		w.pass(10 * time.Second)
		must(w.all[1].ns.Tend(t.Context()))
	}
	hear(1, 2)
	lost, apart, _ := w.all[2].ns.Layout()
	if apart.Epoch != before.Epoch+1 || apart.By != w.all[1].ID {
		t.Fatalf("member 2 goes by %+v", apart)
	}
	hear(0, 2)
	if list := w.all[0].ns.Members(); !list.Overtaken() || list.Has(w.all[1].ID, RoleRead) {
		t.Fatal("the layout is not void")
	}
	for _, c := range []struct {
		i    int
		want roster.StatedLayout
	}{{0, before}, {2, apart}} {
		if _, is, _ := w.all[c.i].ns.Layout(); is != c.want {
			t.Errorf("node %d goes by %+v, want %+v", c.i, is, c.want)
		}
	}
	w.all[2].restart(t)
	if _, is, _ := w.all[2].ns.Layout(); is != apart {
		t.Errorf("after a restart it goes by %+v, want %+v", is, apart)
	}
	for range 8 {
		w.pass(10 * time.Second)
		must(w.all[0].ns.Tend(t.Context()))
	}
	hear(0, 2)
	next, is, _ := w.all[2].ns.Layout()
	if is.By != w.all[0].ID || is.Epoch <= apart.Epoch {
		t.Fatalf("the next layout is %+v", is)
	}
	for s := range placement.Shard(w.rule.Shards) {
		if row := next.Row(s); row.Epoch != is.Epoch || row.Epoch <= lost.Row(s).Epoch {
			t.Errorf("shard %d goes by a row of epoch %d", s, row.Epoch)
		}
	}
}

// smallR signs a message with an R of order 2, which ZIP-215 allows and crypto/ed25519
// does not: s = k·a.
func smallR(seed int, message []byte) []byte {
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	integer := func(b []byte) *big.Int {
		b = slices.Clone(b)
		slices.Reverse(b)
		return new(big.Int).SetBytes(b)
	}
	key := keyOf(seed)
	a := sha512.Sum512(key.Seed())
	a[0] &= 248
	a[31] = a[31]&63 | 64
	r := slices.Repeat([]byte{0xff}, 32)
	r[0], r[31] = 0xec, 0x7f
	k := sha512.Sum512(slices.Concat(r, key[32:], message))
	s := integer(k[:])
	s.Mul(s, integer(a[:32])).Mod(s, order)
	b := s.FillBytes(make([]byte, 32))
	slices.Reverse(b)
	return append(r, b...)
}

// A record and a statement whose signatures only the one rule takes are let in, the
// record alone and among others, where forged ones beside it are refused by name.
func TestOneRuleOfSignatures(t *testing.T) {
	_, ns := newNotes(Policy{})
	record := func(key string) dbadapter.Record {
		r := dbadapter.Record{Key: []byte(key), Version: at(writer, 0)}
		r.Signature = smallR(writer, SignedBytes(ns.Sets()[0].Keys.ID, &r))
		return r
	}
	if v := admit(ns, writer, record("alone"))[0]; v.Result != dbadapter.Applied {
		t.Errorf("alone: %+v", v)
	}
	const n = 2*verifiedAlone + 5
	var many []dbadapter.Record
	forged := map[int]bool{3: true, n/3 - 1: true, n / 3: true, n - 1: true}
	for i := range n {
		r := record(fmt.Sprint("of many ", i))
		if i%2 == 0 {
			r = signedBy(writer, ns, r)
		}
		if forged[i] {
			r.Signature = slices.Clone(r.Signature)
			r.Signature[40] ^= 1
		}
		many = append(many, r)
	}
	for i, v := range admit(ns, writer, many...) {
		if want := map[bool]wire.Reason{true: wire.ReasonSignature}[forged[i]]; v.Reason != want || (v.Result == dbadapter.Applied) == forged[i] {
			t.Errorf("record %d: %+v, want reason %s", i, v, want)
		}
	}

	sign := func(message []byte) ([]byte, error) { return smallR(1, message), nil }
	founding := roster.Statement{Kind: roster.Found, Author: idOf(1), At: at(1, 0).Clock, Policy: &roster.Policy{MaxSkew: DefaultMaxSkew}}
	value := must(founding.Sign(ns.Sets()[0].Keys.ID, sign))
	wantErr(t, second(roster.Parse(ns.id, value, ns.node.verify)), nil, "a statement")
}

// A node whose role has ended by its time names that, and not the denials that
// follow from it.
func TestDeniedAfterTheTerm(t *testing.T) {
	a, b, sa, sb := newPair(RoleWrite)
	end := a.clock.Add(time.Minute)
	succeeds(t, sa.SetRole(t.Context(), b.ID, RoleWrite, end, false))
	succeeds(t, third(b.sync(sb, a, syncing.Ask{})))
	a.clock, b.clock = end.Add(time.Second), end.Add(time.Second)
	if _, _, err := b.sync(sb, a, syncing.Ask{}); !errors.Is(err, ErrDenied) || !errors.Is(err, reconcile.ErrRemoved) || !strings.Contains(err.Error(), "given for a time") {
		t.Errorf("%v", err)
	}
}

// A member that a peer has not heard of shows its list, and both hold the same.
func TestUnheardMemberIsServed(t *testing.T) {
	a, b, sa, sb := newPair(RoleAdmin)
	c := newMachine(3)
	sc := must(c.join(b, invite(sb, RoleWrite))) // a has not heard of c
	must(put(sa, "a", "of a"))
	must(put(sc, "c", "of c"))
	if _, _, err := c.sync(sc, a, syncing.Ask{DryRun: true}); !errors.Is(err, ErrDenied) || sa.Members().Has(c.ID, RoleRead) {
		t.Errorf("a dry run: %v", err)
	}
	if r, _, err := c.sync(sc, a, syncing.Ask{}); err != nil || !r.Verified {
		t.Errorf("%+v, %v", r, err)
	}
	if list(sa) != list(sc) || fmt.Sprint(keysAndVersions(sa)) != fmt.Sprint(keysAndVersions(sc)) {
		t.Errorf("a holds %v of %s\nc holds %v of %s", keysAndVersions(sa), list(sa), keysAndVersions(sc), list(sc))
	}
	// The schedule does not sync the members again where nothing has changed.
	for range 2 {
		succeeds(t, c.turn(sc, a))
	}
	if sc.unlike(a.ID) {
		t.Error("equal lists are synced again with each turn")
	}
}

// A stranger that knows the secret can show statements, one conversation at a time,
// and is given nothing; one that does not is denied.
func TestStrangersShowTheirListsAlone(t *testing.T) {
	a, sa := newAlone()
	hello := func(keys reconcile.Keys, direction wire.Direction) *wire.Hello {
		live := must(sa.Sets()[0].Live.Snapshot(t.Context(), sa.Sets()[0].Store, nil))
		defer live.Close()
		s := reconcile.Initiate(live, reconcile.Options{Keys: keys, Self: []byte(idOf(9)), Remote: []byte(a.ID), Direction: direction})
		defer s.Close()
		h := *s.Next().Message.(*wire.Hello)
		return &h
	}
	if _, done, err := a.Answer(idOf(9), hello(sa.Control.Keys, wire.Push)); err != nil {
		t.Errorf("a stranger that knows the secret: %v", err)
	} else {
		wantErr(t, third(a.Answer(idOf(9), hello(sa.Control.Keys, wire.Push))), reconcile.ErrBusy, "twice at once")
		done()
	}
	wrong := sa.Control.Keys
	wrong.Secret[0] ^= 1
	for name, h := range map[string]*wire.Hello{
		"it asks for statements": hello(sa.Control.Keys, wire.Pull), "both ways": hello(sa.Control.Keys, wire.Both),
		"the data": hello(sa.Sets()[0].Keys, wire.Push), "without the secret": hello(wrong, wire.Push),
	} {
		if _, _, err := a.Answer(idOf(9), h); err != reconcile.ErrDenied { // the very answer that all strangers get
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A removed member is told by a peer, once it has proved the secret, and believes an
// admin's statement alone.
func TestRemovedMemberIsTold(t *testing.T) {
	a, b, sa, sb := newPair(RoleWrite)
	c := newMachine(3)
	sc := must(c.join(a, invite(sa, RoleWrite)))
	succeeds(t, third(b.sync(sb, a, syncing.Ask{})))
	a.clock = noon.Add(time.Minute)
	succeeds(t, sa.Remove(t.Context(), b.ID, false))
	wantErr(t, third(b.sync(sb, c, syncing.Ask{})), nil, "a member that has not heard of it")
	if _, _, err := b.sync(sb, a, syncing.Ask{}); !errors.Is(err, reconcile.ErrRemoved) || !strings.Contains(err.Error(), a.ID.String()) {
		t.Errorf("a sync after the removal: %v", err)
	}
	if r := sb.Removal(); r == nil || r.By != status.ID(a.ID) || !r.At.Equal(a.clock) {
		t.Errorf("it says of its removal %+v", r)
	}
	wantErr(t, second(put(sb, "k", "v")), reconcile.ErrRemoved, "it writes")
	// It is durable.
	succeeds(t, sb.Close())
	sb = must(b.open(sb.Sets()[0].Keys.Secret, must(DecodeState(must(sb.state.Load().Encode())))))
	if r := sb.Removal(); r == nil || r.By != status.ID(a.ID) {
		t.Errorf("opened again, it says %+v", r)
	}
	// A member that has not heard of the new grant tells of the removal once more,
	// and is shown the grant.
	succeeds(t, third(c.sync(sc, a, syncing.Ask{})))
	a.clock = noon.Add(2 * time.Minute)
	if again := must(b.join(a, invite(sa, RoleWrite))); again != sb {
		t.Fatal("another namespace was opened")
	}
	if r := sb.Removal(); r != nil {
		t.Errorf("invited anew, it says %+v", r)
	}
	if _, _, err := b.sync(sb, c, syncing.Ask{}); err != nil || list(sc) != list(sb) {
		t.Errorf("with a member that has heard of the removal alone: %v", err)
	}
	// What is no admin's statement about this node is not believed.
	for name, d := range map[string]struct {
		author int
		draft  roster.Statement
	}{
		"of a writer":          {3, roster.Statement{Kind: roster.Remove, Subject: b.ID}},
		"about another member": {1, roster.Statement{Kind: roster.Remove, Subject: c.ID}},
		"no removal":           {1, roster.Statement{Kind: roster.Lapse, Subject: b.ID}},
	} {
		s := roster.Statement{Kind: d.draft.Kind, Subject: d.draft.Subject, Author: idOf(d.author), At: 7, Heads: []roster.Hash{{1}}}
		value := must(s.Sign(sb.Sets()[0].Keys.ID, func(message []byte) ([]byte, error) { return ed25519.Sign(keyOf(d.author), message), nil }))
		if err := sb.Heed(c.ID, [][]byte{value}); !errors.Is(err, ErrDenied) || errors.Is(err, reconcile.ErrRemoved) {
			t.Errorf("a statement %s: %v", name, err)
		}
		if sb.Removal() != nil {
			t.Errorf("a statement %s was believed", name)
		}
	}
	wantErr(t, sb.Heed(c.ID, [][]byte{[]byte("?")}), ErrDenied, "no statement")
}
