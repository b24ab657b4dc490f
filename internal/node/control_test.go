package node

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// statements are those of the list of members.
func (ns *Namespace) statements() (all [][]byte) {
	for _, value := range rosterOf(ns).Values() {
		all = append(all, value)
	}
	return all
}

// rosterOf has those statements.
func rosterOf(ns *Namespace) *roster.Set {
	h := ns.Hold()
	defer h.Release()
	return h.Statements()
}

// take lets statements in.
func take(ns *Namespace, values ...[]byte) error {
	h := ns.Hold()
	defer h.Release()
	return h.Take(context.Background(), values)
}

// say writes what this node says of itself.
func say(ns *Namespace, key, value []byte) error {
	h := ns.Hold()
	defer h.Release()
	_, err := h.Say(context.Background(), key, value)
	return err
}

// statementOf is the record of a statement.
func statementOf(ns *Namespace, value []byte) (dbadapter.Hashed, error) {
	hash := roster.HashOf(value)
	return dbadapter.Hash(ns.Control.Keys.Hasher, dbadapter.Record{Key: append([]byte{membership.KindStatement}, hash[:]...), Value: value, Version: membership.FixedVersion})
}

// controlRecords are all of a namespace's control namespace, by key.
func controlRecords(ns *Namespace) (out []dbadapter.Hashed) {
	snap := must(ns.Control.Store.Snapshot())
	defer snap.Close()
	for r, err := range snap.Scan(context.Background(), nil, nil) {
		out = append(out, must(r, err))
	}
	return out
}

// saying is what the node with that key says of itself, signed.
func saying(seed int, ns *Namespace, kind byte, about int, v dbadapter.Version, value []byte) dbadapter.Record {
	r := dbadapter.Record{Key: membership.Key(kind, idOf(about)), Value: value, Version: v}
	r.Deleted = value == nil
	r.Signature = ed25519.Sign(keyOf(seed), SignedBytes(ns.Control.Keys.ID, &r))
	return r
}

// Each rule of the admission of control records, with a record that breaks just
// this one.
func TestControlAdmission(t *testing.T) {
	_, ns := newNotes(Policy{Unsigned: true}) // what members say of themselves is signed all the same
	here := []byte{0xa1, 0x01, 0x81, 0x43, 1, 2, 3}
	good := saying(reader, ns, membership.KindAddresses, reader, at(reader, 0), here)
	edited := func(edit func(*dbadapter.Record)) dbadapter.Record { r := good.Clone(); edit(&r); return r }
	many := slices.Concat([]byte{0xa1, 0x01, 0x91}, slices.Repeat([]byte{0x41, 7}, membership.MaxAddrs+1))
	long := slices.Concat([]byte{0xa1, 0x01, 0x81, 0x59, 0x02, 0x01}, make([]byte, membership.MaxAddrSize+1))
	founding := must(statementOf(ns, ns.statements()[0])).Record
	for name, c := range map[string]struct {
		record dbadapter.Record
		want   wire.Reason // 0: it is let in
	}{
		"good":              {good, 0},
		"of a writer":       {saying(writer, ns, membership.KindAddresses, writer, at(writer, 0), here), 0},
		"the same, later":   {saying(writer, ns, membership.KindAddresses, writer, at(writer, time.Second), []byte{0xa1, 0x01, 0x80}), 0},
		"a statement":       {founding, 0},
		"from the future":   {saying(reader, ns, membership.KindAddresses, reader, at(reader, time.Hour), here), wire.ReasonClock},
		"of a stranger":     {saying(stranger, ns, membership.KindAddresses, stranger, at(stranger, 0), here), wire.ReasonWriter},
		"of another member": {saying(writer, ns, membership.KindAddresses, reader, at(writer, 0), here), wire.ReasonWriter},
		"with another key":  {saying(writer, ns, membership.KindAddresses, reader, at(reader, 0), here), wire.ReasonSignature},
		"unsigned":          {edited(func(r *dbadapter.Record) { r.Signature = nil }), wire.ReasonSignature},
		"deleted":           {saying(reader, ns, membership.KindAddresses, reader, at(reader, 0), nil), wire.ReasonWriter},
		"no addresses":      {saying(reader, ns, membership.KindAddresses, reader, at(reader, 0), []byte("?")), wire.ReasonWriter},
		"too many":          {saying(reader, ns, membership.KindAddresses, reader, at(reader, 0), many), wire.ReasonWriter},
		"too long a one":    {saying(reader, ns, membership.KindAddresses, reader, at(reader, 0), long), wire.ReasonWriter},
		"another kind":      {saying(reader, ns, 'z', reader, at(reader, 0), here), wire.ReasonWriter},
		"a short key":       {edited(func(r *dbadapter.Record) { r.Key = r.Key[:1] }), wire.ReasonWriter},
		"no statement":      {dbadapter.Record{Key: append([]byte{membership.KindStatement}, make([]byte, 32)...), Value: []byte("?"), Version: membership.FixedVersion}, wire.ReasonSignature},
		"under another key": {dbadapter.Record{Key: append([]byte{membership.KindStatement}, make([]byte, 32)...), Value: founding.Value, Version: membership.FixedVersion}, wire.ReasonSignature},
		"with a version":    {dbadapter.Record{Key: founding.Key, Value: founding.Value, Version: at(reader, 0)}, wire.ReasonSignature},
		"signed beside it":  {dbadapter.Record{Key: founding.Key, Value: founding.Value, Version: membership.FixedVersion, Signature: good.Signature}, wire.ReasonSignature},
		"a deleted one":     {dbadapter.Record{Key: founding.Key, Deleted: true, Version: membership.FixedVersion}, wire.ReasonSignature},
	} {
		before := len(controlRecords(ns))
		r := must(dbadapter.Hash(ns.Control.Keys.Hasher, c.record))
		v := must(ns.Admit(t.Context(), idOf(stranger), []dbadapter.Hashed{r}))[0]
		if v.Reason != c.want || c.want == 0 && v.Result == 0 {
			t.Errorf("%s: %+v, want reason %d", name, v, c.want)
		}
		if c.want != 0 && len(controlRecords(ns)) != before {
			t.Errorf("%s: it was stored", name)
		}
	}
	if ns.Sets()[0].RejectedCount() != 0 {
		t.Error("a control record is listed with the rejected data")
	}
}

// Statements are taken in any order, in one batch or several, and by then their
// authors are members: what these say of themselves is let in with them.
func TestStatementsInAnyOrder(t *testing.T) {
	a, sa := newAlone()
	alone := must(a.Found(sa.Sets()[0].Keys.Secret, "again", Policy{}))
	alone.Seeds = sa.statements()
	for seed := 2; seed < 12; seed++ {
		succeeds(t, setRole(sa, idOf(seed), RoleWrite))
	}
	all := controlRecords(sa)
	all = append(all, must(dbadapter.Hash(sa.Control.Keys.Hasher, saying(9, sa, membership.KindAddresses, 9, at(9, 0), []byte{0xa1, 0x01, 0x80}))))
	for name, batch := range map[string]int{"at once": len(all), "one by one": 1, "by threes": 3} {
		t.Run(name, func(t *testing.T) {
			b := newMachine(1) // the same id: the state is its own
			sb := must(b.open(sa.Sets()[0].Keys.Secret, alone))
			for part := range slices.Chunk(all, batch) {
				must(sb.Admit(t.Context(), a.ID, part))
			}
			if list(sb) != list(sa) || sb.Members().Digest() != sa.Members().Digest() {
				t.Errorf("the members are %s\nwant %s", list(sb), list(sa))
			}
			succeeds(t, sb.Close())
			again := must(b.open(sa.Sets()[0].Keys.Secret, alone))
			if list(again) != list(sa) {
				t.Errorf("opened again, the members are %s", list(again))
			}
		})
	}
}

// A statement is durable before it counts.
func TestStatementsAreDurableFirst(t *testing.T) {
	m, ns := newAlone()
	succeeds(t, setRole(ns, idOf(2), RoleRead))
	old, before := ns.Members(), list(ns)
	full := errors.New("the disk is full")
	m.applyControl = func(dbadapter.Namespace, []dbadapter.Write) ([]dbadapter.Outcome, error) {
		if list(ns) != before {
			t.Error("it counts before it is stored")
		}
		return nil, full
	}
	for name, err := range map[string]error{
		"a new member": setRole(ns, idOf(3), RoleRead),
		"another role": setRole(ns, idOf(2), RoleAdmin),
		"a removal":    ns.Remove(t.Context(), idOf(2), false),
		"a lapse":      ns.Lapse(t.Context(), idOf(2)),
	} {
		if !errors.Is(err, full) || list(ns) != before {
			t.Errorf("%s: %v; the members are %s, were %s", name, err, list(ns), before)
		}
	}
	m.applyControl = nil
	if err := setRole(ns, idOf(3), RoleRead); err != nil || !ns.Members().Has(idOf(3), RoleRead) || ns.Members().Role(idOf(2)) != RoleRead {
		t.Errorf("once there is room: %v, %s", err, list(ns))
	}
	if old.Has(idOf(3), RoleRead) {
		t.Error("a list that was handed out has changed")
	}
	succeeds(t, ns.Close())
	if again := must(m.open(ns.Sets()[0].Keys.Secret, ns.state.Load())); list(again) != list(ns) {
		t.Errorf("opened again, the members are %s, were %s", list(again), list(ns))
	}
}

// What cannot be stated is refused, and says why.
func TestStatementsThatMayNotBeMade(t *testing.T) {
	a, b, sa, sb := newPair(RoleAdmin)
	succeeds(t, setRole(sa, idOf(3), RoleRead))
	before := list(sa)
	e, f := newMachine(5), newMachine(6)
	se := e.create("above", Policy{})
	must(f.join(e, invite(se, RoleAdmin)))
	succeeds(t, se.SetRole(t.Context(), idOf(3), RoleAdmin, noon.Add(time.Hour), false))
	d := newMachine(8)
	sd := d.create("terms", Policy{})
	succeeds(t, sd.SetRole(t.Context(), idOf(3), RoleAdmin, noon.Add(time.Hour), false))
	for name, c := range map[string]struct {
		err  error
		want error
	}{
		"no role":               {setRole(sa, idOf(3), 0), ErrInvalid},
		"a role too high":       {setRole(sa, idOf(3), 9), ErrInvalid},
		"no id":                 {setRole(sa, "x", RoleRead), ErrDenied},
		"in the past":           {sa.SetRole(t.Context(), idOf(3), RoleRead, noon.Add(-time.Second), false), ErrInvalid},
		"a stranger's end":      {sa.Remove(t.Context(), idOf(9), false), dbadapter.ErrNotFound},
		"a stranger's lapse":    {sa.Lapse(t.Context(), idOf(9)), dbadapter.ErrNotFound},
		"its own lapse":         {sa.Lapse(t.Context(), a.ID), ErrInvalid},
		"the admin above":       {sb.Remove(t.Context(), a.ID, false), ErrDenied},
		"its demotion":          {setRole(sb, a.ID, RoleRead), ErrDenied},
		"nothing new":           {setRole(sa, idOf(3), RoleRead), nil},
		"it has not lapsed":     {sa.Return(t.Context()), nil},
		"the last without term": {sd.Remove(t.Context(), d.ID, false), ErrDenied},
		"its own last term":     {sd.SetRole(t.Context(), d.ID, RoleAdmin, noon.Add(time.Hour), false), ErrDenied},
		"above a term, alone":   {setRole(se, e.ID, RoleWrite), ErrDenied},
		"the last admin goes":   {newMachine(7).create("alone", Policy{}).Remove(t.Context(), idOf(7), false), ErrDenied},
	} {
		if !errors.Is(c.err, c.want) || c.want == nil && c.err != nil {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
	if after := list(sa); after != before {
		t.Errorf("the members are %s, were %s", after, before)
	}
	sc := must(newMachine(4).join(a, invite(sa, RoleWrite)))
	for want, err := range map[string]error{
		"not above it in the chain of invitations: only ": sb.Remove(t.Context(), a.ID, false),
		"chain of invitations: only itself, or an admin":  setRole(sb, a.ID, RoleRead),
		"role here is write, given by " + a.ID.String():   sc.Lapse(t.Context(), b.ID),
		"; only an admin does that":                       setRole(sc, b.ID, RoleRead),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	wantErr(t, sc.Remove(t.Context(), idOf(4), false), nil, "a writer leaves")
}

// A role that has a term ends with it, and an admin's node writes that down.
func TestRoleExpires(t *testing.T) {
	a, b, sa, sb := newPair(RoleRead)
	succeeds(t, sa.SetRole(t.Context(), b.ID, RoleWrite, noon.Add(time.Hour), false))
	succeeds(t, third(b.sync(sb, a, syncing.Ask{})))
	must(put(sb, "k", "in time"))
	succeeds(t, third(b.sync(sb, a, syncing.Ask{})))
	if err := a.Tend(t.Context()); err != nil || !sa.Members().Has(b.ID, RoleWrite) {
		t.Errorf("before its end: %v, %s", err, list(sa))
	}
	a.clock = noon.Add(time.Hour + time.Second)
	b.clock = a.clock
	wantErr(t, third(b.sync(sb, a, syncing.Ask{})), ErrDenied, "a sync after its end")
	if err := a.Tend(t.Context()); err != nil || sa.Members().Has(b.ID, RoleRead) {
		t.Errorf("after its end: %v, %s", err, list(sa))
	}
	wantErr(t, third(b.sync(sb, a, syncing.Ask{})), ErrDenied, "a sync after it was written down")
	if r := sb.Removal(); r == nil || r.By != status.ID(a.ID) {
		t.Errorf("the node has heard of %+v", r)
	}
	if got := string(must(get(sa, "k")).Value); got != "in time" {
		t.Errorf("what it wrote is %q", got)
	}
}

// Members learn where the others are, from any member.
func TestAddressesTravel(t *testing.T) {
	a, b, c := newMachine(1), newMachine(2), newMachine(3)
	moved := map[ID]string{}
	c.Moved = func(id ID, addrs [][]byte) { moved[id] = fmt.Sprint(addrs) }
	sa := a.create("notes", Policy{})
	sb := must(b.join(a, invite(sa, RoleRead)))
	sc := must(c.join(a, invite(sa, RoleRead)))
	for n, addrs := range [][][]byte{{{7}, {1, 2}}, {{8}}} {
		succeeds(t, sb.Announce(t.Context(), addrs))
		before := len(controlRecords(sb))
		if err := sb.Announce(t.Context(), slices.Clone(addrs)); err != nil || len(controlRecords(sb)) != before {
			t.Errorf("announced again: %v", err)
		}
		for _, pair := range []struct {
			m     *machine
			ns    *Namespace
			other *machine
		}{{b, sb, a}, {c, sc, a}} {
			succeeds(t, pair.m.turn(pair.ns, pair.other))
		}
		slices.SortFunc(addrs, slices.Compare)
		if got := fmt.Sprint(must(sc.Addresses())); got != fmt.Sprint([]membership.Addresses{{ID: b.ID, Addrs: addrs}}) || moved[b.ID] != fmt.Sprint(addrs) {
			t.Errorf("round %d: c knows %s, and was told %v", n, got, moved)
		}
	}
	succeeds(t, sa.Remove(t.Context(), b.ID, false))
	if got := must(sa.Addresses()); len(got) != 0 {
		t.Errorf("of a member that was removed: %v", got)
	}
}
