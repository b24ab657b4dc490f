package node

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// seeing is a draft whose writer has seen what is held elsewhere.
func seeing(d Draft, seen ...*dbadapter.Record) Draft {
	d.Seen = seen
	return d
}

// What is held is answered, tombstones too, and whether the answer is sure: not that of a
// node that was not found equal with another one yet.
func TestRoutedReads(t *testing.T) {
	a, b, c := newMachine(1), newMachine(2), newMachine(3)
	sa := a.create("notes", Policy{})
	sb := must(b.join(a, invite(sa, RoleWrite)))
	sc := must(c.join(a, invite(sa, RoleRead)))
	want := must(put(sa, "k", "v"))
	must(put(sa, "gone", "v"))
	must(commit(sa.Sets()[0].Delete([]byte("gone"))))
	for key, value := range map[string]string{"k": "v", "gone": "", "none": ""} {
		got, err := c.read(t, sc, a, key)
		if err != nil || !got.Host || !got.Settled || (got.Record == nil) != (key == "none") {
			t.Fatalf("%s: %+v, %v", key, got, err)
		}
		if r := got.Record; r != nil && (string(r.Value) != value || r.Deleted != (key == "gone") || key == "k" && r.Version != want) {
			t.Errorf("%s: %+v", key, r)
		}
	}
	hearing(t, a, sa, b) // that c is a member
	if got, err := c.read(t, sc, b, "k"); err != nil || got.Settled || !got.Host || got.Record != nil {
		t.Errorf("of a newcomer: %+v, %v", got, err)
	}
	if err := b.turn(sb, a); err != nil {
		t.Fatal(err)
	}
	if got, err := c.read(t, sc, b, "k"); err != nil || !got.Settled || got.Record == nil {
		t.Errorf("after a sync: %+v, %v", got, err)
	}
	if err := sb.MayLack(); err != nil {
		t.Fatal(err)
	}
	if got, err := c.read(t, sc, b, "none"); err != nil || got.Settled {
		t.Errorf("of a node that may lack something: %+v, %v", got, err)
	}
	if n := len(records(sc)); n != 0 {
		t.Errorf("the asker holds %d records", n)
	}
}

// A record that was made elsewhere is held once it is durable; one that replaces what its
// writer has not seen is not admitted, until it names that.
func TestRoutedWrites(t *testing.T) {
	a, b, c := newMachine(1), newMachine(2), newMachine(3)
	sa := a.create("notes", Policy{})
	sb := must(b.join(a, invite(sa, RoleWrite)))
	sc := must(c.join(a, invite(sa, RoleWrite)))
	if err := errors.Join(b.turn(sb, a), b.turn(sb, a)); err != nil {
		t.Fatal(err)
	}
	remote := sc.Remote([]byte("k"))
	first := must(remote.Make(draft("k", "first")))
	for _, host := range []*machine{a, b, a} {
		if got, err := c.offer(t, sc, host, first); err != nil || !got.Held || !got.Settled {
			t.Fatalf("a new key: %+v, %v", got, err)
		}
	}
	if got := must(get(sb, "k")); string(got.Value) != "first" || got.Version != first.Version {
		t.Errorf("it holds %+v", got)
	}
	// b's clock is ahead: what it writes is above what c makes without having seen it.
	b.clock = b.clock.Add(time.Minute)
	over := must(put(sb, "k", "over"))
	if err := a.turn(sa, b); err != nil {
		t.Fatal(err)
	}
	second := must(remote.Make(seeing(draft("k", "second"), first)))
	got, err := c.offer(t, sc, a, second)
	if err != nil || got.Held || got.Other == nil || got.Other.Version != over || !got.Other.Supersedes(first.Version) {
		t.Fatalf("over what was not seen: %+v, %v", got, err)
	}
	if held := must(get(sa, "k")); held.Version != over {
		t.Errorf("it holds %s", held.Version)
	}
	third := must(remote.Make(seeing(draft("k", "third"), second, got.Other)))
	if third.Version.Compare(over) <= 0 || !third.Supersedes(over) {
		t.Errorf("%+v does not replace %s", third, over)
	}
	for _, host := range []*machine{a, b} {
		if got, err := c.offer(t, sc, host, third); err != nil || !got.Held {
			t.Fatalf("over what was seen: %+v, %v", got, err)
		}
	}
	for _, ns := range []*Namespace{sa, sb} {
		if n := ns.Sets()[0].Store.KeptCount(dbadapter.KeptConflict); n != 0 || string(must(get(ns, "k")).Value) != "third" {
			t.Errorf("%d conflicts", n)
		}
	}
	// What the host holds has seen the record: that counts as held, and is not written over.
	if got, err := c.offer(t, sc, b, second); err != nil || !got.Held || got.Other != nil {
		t.Errorf("what a later one has seen: %+v, %v", got, err)
	}
	// What is offered once more, as by a member that means to hold promises back, changes nothing.
	holds := slices.Clone(sa.Sets()[0].vouching.mark.Holds)
	for range 3 {
		a.clock = a.clock.Add(2 * time.Minute)
		must(put(sa, "other", "its clock goes on"))
		if got, err := c.offer(t, sc, a, third); err != nil || !got.Held {
			t.Errorf("once more: %+v, %v", got, err)
		}
	}
	if got := sa.Sets()[0].vouching.mark.Holds; !slices.Equal(got, holds) {
		t.Errorf("what holds promises back was %+v, and is %+v", holds, got)
	}
	// A dated import names no writer, and is replaced without having been seen.
	must(importAll(sa, []Item{{Key: []byte("dated"), Value: []byte("old"), Time: noon.Add(-time.Hour)}}))
	if got, err := c.offer(t, sc, a, must(sc.Remote([]byte("dated")).Make(draft("dated", "new")))); err != nil || !got.Held {
		t.Errorf("over a dated one: %+v, %v", got, err)
	}
	if n := sa.Sets()[0].RejectedCount(); n != 0 || len(records(sc)) != 0 {
		t.Errorf("%d refusals are listed, and the writer holds %d records", n, len(records(sc)))
	}
}

// What the admission refuses is declined, with its reason, and nothing is written.
func TestRoutedWritesAreAdmitted(t *testing.T) {
	a, b, c := newMachine(1), newMachine(2), newMachine(3)
	sa := a.create("notes", Policy{})
	sb := must(b.join(a, invite(sa, RoleRead)))
	sc := must(c.join(a, invite(sa, RoleWrite)))
	if _, err := sb.Remote([]byte("k")).Make(draft("k", "v")); !errors.Is(err, ErrDenied) {
		t.Errorf("a reader writes: %v", err)
	}
	remote := sc.Remote([]byte("k"))
	good := must(remote.Make(draft("k", "v")))
	forged := good.Clone()
	forged.Value = []byte("forged")
	stranger := good.Clone()
	stranger.Version.Writer = writerOf(9)
	early := signedBy(3, sa, dbadapter.Record{Key: []byte("k"), Version: dbadapter.Version{Clock: dbadapter.TimestampAt(noon.Add(time.Hour)), Writer: writerOf(3), Incarnation: 1}})
	readers := signedBy(2, sa, dbadapter.Record{Key: []byte("k"), Version: dbadapter.Version{Clock: good.Version.Clock, Writer: writerOf(2), Incarnation: 1}})
	for name, one := range map[string]struct {
		record dbadapter.Record
		want   error
	}{
		"a forged signature":  {forged, ErrDenied},
		"a stranger's":        {stranger, ErrDenied},
		"one from the future": {early, ErrFutureVersion},
		"a reader's":          {readers, ErrDenied},
	} {
		got, err := c.offer(t, sc, a, &one.record)
		if err != nil || got.Held || !errors.Is(got.Declined, one.want) || !errors.Is(got.Declined, ErrDeclined) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if n := len(records(sa)); n != 0 || sa.Sets()[0].RejectedCount() != 0 {
		t.Errorf("%d records are held, %d refusals are listed", n, sa.Sets()[0].RejectedCount())
	}
	// A member that only reads may pass on what another one has signed.
	if got, err := b.offer(t, sb, a, good); err != nil || !got.Held {
		t.Errorf("passed on: %+v, %v", got, err)
	}
	a.apply = func(dbadapter.Namespace, []dbadapter.Write) ([]dbadapter.Outcome, error) {
		return nil, errors.New("the disk is full")
	}
	if got, err := c.offer(t, sc, a, must(remote.Make(seeing(draft("k", "w"), good)))); !errors.Is(err, reconcile.ErrPeer) || got.Held {
		t.Errorf("what could not be committed: %+v, %v", got, err)
	}
}

// A host that answers what a sync would not bring in is not believed.
func TestRoutedAnswersAreExamined(t *testing.T) {
	a, b := newMachine(1), newMachine(2)
	sa := a.create("notes", Policy{})
	sb := must(b.join(a, invite(sa, RoleWrite)))
	must(put(sa, "k", "v"))
	r := sb.Remote([]byte("k"))
	ask := must(r.AskRecord(a.ID))
	honest, ok := b.routed(t, a, ask).(*wire.Reply)
	if !ok {
		t.Fatal("no answer")
	}
	for name, lie := range map[string]func(*dbadapter.Record){
		"another value":    func(r *dbadapter.Record) { r.Value = []byte("w") },
		"another key":      func(r *dbadapter.Record) { r.Key = []byte("l") },
		"another version":  func(r *dbadapter.Record) { r.Version.Clock++ },
		"another writer":   func(r *dbadapter.Record) { r.Version.Writer = writerOf(9) },
		"no signature":     func(r *dbadapter.Record) { r.Signature = nil },
		"from the future":  func(r *dbadapter.Record) { r.Version.Clock = dbadapter.TimestampAt(noon.Add(time.Hour)) },
		"a deleted one":    func(r *dbadapter.Record) { r.Value, r.Deleted = nil, true },
		"one that expires": func(r *dbadapter.Record) { r.Expires = dbadapter.TimestampAt(noon.Add(time.Hour)) },
	} {
		reply := *honest
		answer := *honest.Answer.(*wire.RecordAnswer)
		record := answer.Record.Clone()
		lie(&record)
		answer.Record, reply.Answer = &record, &answer
		if got, err := r.Record(a.ID, ask, &reply); !errors.Is(err, ErrDeclined) || got.Record != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := r.Record(a.ID, ask, honest); err != nil || string(got.Record.Value) != "v" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := r.Record(a.ID, must(r.AskRecord(a.ID)), honest); err != ErrDenied {
		t.Errorf("an answer to another question: %v", err)
	}
	hold := must(r.AskHold(a.ID, must(r.Make(draft("k", "w"))), route.Manner{}))
	far := &wire.Reply{Nonce: honest.Nonce, Answer: &wire.HoldAnswer{Outcomes: []wire.HoldOutcome{{Other: &dbadapter.Record{Version: dbadapter.Version{Clock: dbadapter.TimestampAt(noon.Add(time.Hour)), Writer: 5}}}}}}
	reconcile.ProveReply(sa.proofs(), []byte(a.ID), []byte(b.ID), hold, far)
	if got, err := r.Hold(a.ID, hold, far); !errors.Is(err, ErrDeclined) || got.Other != nil {
		t.Errorf("a version that no clock can follow: %+v, %v", got, err)
	}
}

// A routed question of a stranger, of a removed member, without the secret, or about
// another namespace gets one answer; so many are answered at once.
func TestRoutedQuestionsAreOfMembers(t *testing.T) {
	a, b, stranger := newMachine(1), newMachine(2), newMachine(3)
	sa := a.create("notes", Policy{})
	sb := must(b.join(a, invite(sa, RoleRead)))
	r := sb.Remote([]byte("k"))
	question := must(r.AskRecord(a.ID))
	for name, edit := range map[string]func(m *wire.Ask) ID{
		"a stranger":            func(*wire.Ask) ID { return stranger.ID },
		"another member":        func(*wire.Ask) ID { return a.ID },
		"another nonce":         func(m *wire.Ask) ID { m.Nonce[0]++; return b.ID },
		"another proof":         func(m *wire.Ask) ID { m.Proof[0]++; return b.ID },
		"no such namespace":     func(m *wire.Ask) ID { m.Namespace = dbadapter.NamespaceID{9}; return b.ID },
		"the control namespace": func(m *wire.Ask) ID { m.Namespace = sa.Control.Keys.ID; return b.ID },
	} {
		m := *question
		from := edit(&m)
		if _, err := a.Routed(from, &m); err != ErrDenied {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := a.Routed(b.ID, &wire.Ask{Version: 9}); err != reconcile.ErrVersion {
		t.Errorf("another version: %v", err)
	}
	if _, err := a.Routed(b.ID, must(sb.Sets()[0].Ask(a.ID, 0, &wire.AskSet{}))); !errors.Is(err, reconcile.ErrProtocol) {
		t.Errorf("a question that is not routed: %v", err)
	}
	if asked, err := a.Asked(b.ID, question); err == nil {
		if _, _, err := asked.Answer(); !errors.Is(err, reconcile.ErrProtocol) {
			t.Errorf("a routed question among others: %v", err)
		}
		asked.Done()
	}
	var open []*Routed
	for i := range MaxRouted + 1 {
		one, err := a.Routed(b.ID, question)
		if want := i == MaxRouted; errors.Is(err, reconcile.ErrBusy) != want {
			t.Fatalf("question %d: %v", i, err)
		}
		if err == nil {
			open = append(open, one)
		}
	}
	for i := range MaxFeeding + 1 { // of the feed a peer hears all the same
		one, err := a.Routed(b.ID, must(r.ask(a.ID, &wire.AskFeed{})))
		if want := i == MaxFeeding; errors.Is(err, reconcile.ErrBusy) != want {
			t.Fatalf("question %d about the feed beside others: %v", i, err)
		}
		if err == nil {
			open = append(open, one)
		}
	}
	open[0].Done()
	if one, err := a.Routed(b.ID, question); err != nil {
		t.Errorf("a question beside those about the feed: %v", err)
	} else {
		open[0] = one
	}
	for _, one := range open {
		one.Done()
	}
	a.Config.Paused = func(id ID) bool { return id == b.ID }
	if _, err := a.Routed(b.ID, question); !errors.Is(err, reconcile.ErrPaused) {
		t.Errorf("paused: %v", err)
	}
	a.Config.Paused = nil
	if err := sa.Remove(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Routed(b.ID, question); err != ErrDenied {
		t.Errorf("removed: %v", err)
	}
	if _, err := sa.Remote([]byte("k")).AskRecord(b.ID); !errors.Is(err, ErrDenied) {
		t.Errorf("a question to a removed member: %v", err)
	}
}

// In a namespace that is cut into shards a key is asked for where it is; a node that is no
// host says by which layout, gives what it holds all the same, and takes nothing.
func TestRoutedShards(t *testing.T) {
	every := make([]placement.Shard, byHash.Shards)
	for i := range every {
		every[i] = placement.Shard(i)
	}
	c := newShardCrew(t, every, every, every)
	asker := newMachine(9)
	if _, err := c.ns[0].Remote([]byte("k")).Hosts(); !errors.Is(err, ErrNoLayout) {
		t.Errorf("without a layout: %v", err)
	}
	c.rounds(1)
	c.pass(time.Minute)
	c.rounds(2)
	asker.clock = c.machines[0].clock
	joined := must(asker.redeem(c.machines[0], invite(c.ns[0], RoleWrite)))
	ns := must(asker.open(joined.Secret, joined.State))
	hearing(t, asker, ns, c.machines[0])
	for _, m := range c.machines[1:] {
		hearing(t, c.machines[0], c.ns[0], m)
	}
	_, stated, err := ns.Layout()
	if err != nil {
		t.Fatal(err)
	}
	shards := map[placement.Shard]bool{}
	for i := range 40 {
		key := fmt.Sprint("key ", i)
		remote := ns.Remote([]byte(key))
		shards[remote.Shard()] = true
		hosts := must(remote.Hosts())
		if len(hosts) != 2 || remote.Here() != nil {
			t.Fatalf("hosts %v", hosts)
		}
		record := must(remote.Make(draft(key, key)))
		for j, m := range c.machines {
			host := slices.Contains(hosts, m.ID)
			got, err := asker.offer(t, ns, m, record)
			if err != nil || got.Held != host || got.Elsewhere == host {
				t.Fatalf("%s at %d, a host %t: %+v, %v", key, j, host, got, err)
			}
			if got.Elsewhere && (got.Layout.Epoch != stated.Epoch || got.Layout.Table != [32]byte(stated.Table)) || ns.Outdated(got.Layout) {
				t.Errorf("it names %+v, want %+v", got.Layout, stated)
			}
			answer, err := asker.read(t, ns, m, key)
			if err != nil || answer.Host != host || answer.Settled != host || (answer.Record != nil) != host {
				t.Fatalf("%s at %d, a host %t: %+v, %v", key, j, host, answer, err)
			}
		}
		for j := range c.machines { // one that is no host any more still has what it had
			if !slices.Contains(hosts, c.machines[j].ID) {
				must(c.set(j, remote.Shard()).Store.Apply(t.Context(), []dbadapter.Write{{Record: must(dbadapter.Hash(remote.view.Keys.Hasher, *record))}}))
				if answer, err := asker.read(t, ns, c.machines[j], key); err != nil || answer.Host || answer.Settled || answer.Record == nil {
					t.Errorf("of a former host: %+v, %v", answer, err)
				}
			}
		}
	}
	if len(shards) < 8 {
		t.Errorf("40 keys are in %d shards", len(shards))
	}
	if next := (route.Layout{Epoch: stated.Epoch + 1}); !ns.Outdated(next) || ns.Outdated(route.Layout{}) || ns.Outdated(route.Layout{Epoch: stated.Epoch - 1}) {
		t.Error("which layouts are outdated")
	}
	// A record of another shard breaks the protocol.
	remote := ns.Remote([]byte("key 0"))
	host := c.machines[slices.IndexFunc(c.machines, func(m *machine) bool { return m.ID == must(remote.Hosts())[0] })]
	for i := 1; ; i++ {
		key := fmt.Appendf(nil, "key %d", i)
		if ns.Home(key) == remote.shard {
			continue
		}
		stray := signedBy(9, c.ns[0], dbadapter.Record{Key: key, Version: dbadapter.Version{Clock: 5 << 40, Writer: writerOf(9)}})
		stray.Signature = ed25519.Sign(keyOf(9), SignedBytes(remote.view.Keys.ID, &stray))
		ask := must(remote.AskHold(host.ID, &stray, route.Manner{}))
		if m, ok := asker.routed(t, host, ask).(*wire.Refuse); !ok || m.Code != wire.CodeProtocol {
			t.Errorf("a record of another shard: %+v", m)
		}
		break
	}
	if !bytes.Equal(remote.view.Keys.ID[:], c.set(0, remote.shard).Keys.ID[:]) {
		t.Error("the asker has other keys than the hosts")
	}
}
