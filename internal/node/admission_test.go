package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// admit passes records through the admission, as from the node with that key.
func admit(ns *Namespace, from int, records ...dbadapter.Record) []reconcile.Verdict {
	return must(ns.Sets()[0].Admit(context.Background(), idOf(from), 0, noTerm, hashed(ns, records...))())
}

// hashed are records as they come out of a session.
func hashed(ns *Namespace, records ...dbadapter.Record) []dbadapter.Hashed {
	out := make([]dbadapter.Hashed, len(records))
	for i, r := range records {
		out[i] = must(dbadapter.Hash(ns.Sets()[0].Keys.Hasher, r))
	}
	return out
}

// at is a version of the node with that key, at a time after noon.
func at(seed int, d time.Duration) dbadapter.Version {
	return dbadapter.Version{Clock: dbadapter.TimestampAt(noon.Add(d)), Writer: writerOf(seed), Incarnation: 1}
}

// dated is the version of a dated import.
func dated(d time.Duration) dbadapter.Version {
	return dbadapter.Version{Clock: dbadapter.TimestampAt(noon.Add(d))}
}

// The keys of the members that the tests below know; the machine itself is 1.
const (
	writer, other, reader, stranger = 2, 3, 4, 5
)

func newNotes(p Policy) (*machine, *Namespace) {
	m := newMachine(1)
	ns := m.create("notes", p)
	for seed, role := range map[int]Role{writer: RoleWrite, other: RoleWrite, reader: RoleRead} {
		if err := setRole(ns, idOf(seed), role); err != nil {
			panic(err)
		}
	}
	return m, ns
}

// Each rule of the admission, with a record that breaks just this one.
func TestAdmission(t *testing.T) {
	m, ns := newNotes(Policy{})
	record := func(key string, v dbadapter.Version) dbadapter.Record {
		return dbadapter.Record{Key: []byte(key), Value: []byte("v"), Version: v}
	}
	named := func(r dbadapter.Record, signer int) dbadapter.Record { r.Signer = writerOf(signer); return r }
	altered := func(r dbadapter.Record, edit func(*dbadapter.Record)) dbadapter.Record { edit(&r); return r }
	good := signedBy(writer, ns, record("good", at(writer, 0)))
	unnamed := signedBy(writer, ns, record("dated, of an unnamed signer", dated(0)))
	const skew = DefaultMaxSkew
	cases := []struct {
		from   int
		record dbadapter.Record
		want   wire.Reason // 0: it is let in
	}{
		{writer, good, 0},
		{reader, signedBy(writer, ns, record("passed on by a reader", at(writer, 0))), 0},
		{other, signedBy(1, ns, record("of this node", at(1, 0))), 0},
		{other, named(signedBy(writer, ns, record("dated", dated(0))), writer), 0},
		{other, signedBy(writer, ns, record("just within the skew", at(writer, skew))), 0},
		{other, signedBy(writer, ns, dbadapter.Record{Key: []byte("grave"), Deleted: true, Version: at(writer, 0)}), 0},

		{writer, signedBy(reader, ns, record("of a reader", at(reader, 0))), wire.ReasonWriter},
		{reader, signedBy(reader, ns, record("of a reader, from it", at(reader, 0))), wire.ReasonWriter},
		{writer, signedBy(stranger, ns, record("of a stranger", at(stranger, 0))), wire.ReasonWriter},
		{writer, record("not signed", at(writer, 0)), wire.ReasonSignature},
		{writer, signedBy(other, ns, record("signed by another", at(writer, 0))), wire.ReasonSignature},
		{writer, altered(good, func(r *dbadapter.Record) { r.Key = []byte("another key") }), wire.ReasonSignature},
		{writer, altered(good, func(r *dbadapter.Record) { r.Value = []byte("another value") }), wire.ReasonSignature},
		{writer, altered(good, func(r *dbadapter.Record) { r.Version.Clock++ }), wire.ReasonSignature},
		{writer, altered(good, func(r *dbadapter.Record) { r.Version.Incarnation++ }), wire.ReasonSignature},
		{writer, altered(good, func(r *dbadapter.Record) { r.Deleted, r.Value = true, nil }), wire.ReasonSignature},

		{writer, named(signedBy(stranger, ns, record("dated, of a stranger", dated(0))), stranger), wire.ReasonWriter},
		{writer, named(signedBy(reader, ns, record("dated, of a reader", dated(0))), reader), wire.ReasonWriter},
		{writer, named(signedBy(other, ns, record("dated, signed by another", dated(0))), writer), wire.ReasonSignature},
		{writer, unnamed, wire.ReasonWriter},
		{writer, record("dated, not signed", dated(0)), wire.ReasonWriter},
		{writer, named(signedBy(writer, ns, record("no writer, but a counter", dbadapter.Version{Clock: dated(0).Clock + 1})), writer), wire.ReasonWriter},
		{writer, named(signedBy(writer, ns, record("no writer, but an incarnation", dbadapter.Version{Clock: dated(0).Clock, Incarnation: 1})), writer), wire.ReasonWriter},

		{writer, signedBy(writer, ns, record("too far ahead", at(writer, skew+time.Millisecond))), wire.ReasonClock},
		{writer, signedBy(writer, ns, record("before 2020", dbadapter.Version{Clock: dbadapter.TimestampAt(hlc.Epoch) - 1, Writer: writerOf(writer)})), wire.ReasonClock},
	}
	refused := 0
	var all []dbadapter.Record
	for _, c := range cases {
		held := ns.Sets()[0].RejectedCount()
		m.verified = 0
		v := admit(ns, c.from, c.record)[0]
		if v.Reason != c.want || (v.Reason == 0) != (v.Result == dbadapter.Applied) {
			t.Errorf("%.40q: reason %s, result %d; want reason %s", c.record.Key, v.Reason, v.Result, c.want)
		}
		// Only what has a signature, of a member that may write, costs a check.
		if checked := c.want == 0 || c.want == wire.ReasonSignature && len(c.record.Signature) > 0; (m.verified == 1) != checked || m.verified > 1 {
			t.Errorf("%.40q: %d signatures were checked", c.record.Key, m.verified)
		}
		if c.want != 0 {
			refused++
			all = append(all, c.record)
			list := ns.Sets()[0].Rejected()
			if last := list[len(list)-1]; len(list) != held+1 || string(last.Key) != string(c.record.Key) ||
				last.Version != c.record.Version || last.From != idOf(c.from) || last.Reason == "" || !last.Time.Equal(noon) {
				t.Errorf("%.40q is remembered as %+v", c.record.Key, last)
			}
		}
	}
	if got := len(records(ns)); got != len(cases)-refused {
		t.Errorf("%d records are held, want %d", got, len(cases)-refused)
	}
	// Together they have the verdicts that they have alone, and one that is let in
	// among them is committed.
	late := signedBy(writer, ns, record("late", at(writer, 0)))
	verdicts := admit(ns, writer, append(all[:5:5], append([]dbadapter.Record{late}, all[5:]...)...)...)
	for i, v := range verdicts {
		if (i == 5) != (v.Reason == 0) {
			t.Errorf("record %d of many: %+v", i, v)
		}
	}
	// Once its writer may write, a record is let in, and the rejection forgotten.
	before := ns.Sets()[0].RejectedCount()
	succeeds(t, setRole(ns, idOf(reader), RoleWrite))
	if v := admit(ns, other, cases[6].record)[0]; v.Reason != 0 || ns.Sets()[0].RejectedCount() != before-1 {
		t.Errorf("%+v; %d of %d rejections are left", v, ns.Sets()[0].RejectedCount(), before)
	}
}

// Without signatures, what counts is the role of the member that passes a record
// on; a version without a writer is still that of a dated import.
func TestAdmissionUnsigned(t *testing.T) {
	m, ns := newNotes(Policy{Unsigned: true})
	m.verified = 0 // of the list of members
	for i, c := range []struct {
		from    int
		version dbadapter.Version
		want    wire.Reason
	}{
		{writer, at(writer, 0), 0},
		{1, at(stranger, 0), 0},
		{other, at(reader, 0), 0},
		{other, dated(0), 0},
		{reader, at(writer, 0), wire.ReasonWriter},
		{stranger, at(writer, 0), wire.ReasonWriter},
		{reader, dated(0), wire.ReasonWriter},
		{writer, dbadapter.Version{Clock: dated(0).Clock + 1}, wire.ReasonWriter},
		{writer, dbadapter.Version{Clock: dated(0).Clock, Incarnation: 1}, wire.ReasonWriter},
		{writer, at(writer, time.Hour), wire.ReasonClock},
	} {
		if v := admit(ns, c.from, dbadapter.Record{Key: fmt.Append(nil, i), Version: c.version})[0]; v.Reason != c.want {
			t.Errorf("case %d: reason %s, want %s", i, v.Reason, c.want)
		}
	}
	if m.verified != 0 {
		t.Errorf("%d signatures were checked", m.verified)
	}
}

// A dated record that any of 1,000 members has signed is let in, whichever member
// brings it, for one signature check; a signature that is not that of the named
// member costs no more.
func TestDatedRecordsOfAnySigner(t *testing.T) {
	m, ns := newAlone()
	for seed := 2; seed <= MaxMembers; seed++ {
		succeeds(t, setRole(ns, idOf(seed), RoleWrite))
	}
	var good, bad []dbadapter.Record
	for seed := 1; seed <= MaxMembers; seed++ {
		r := dbadapter.Record{Key: fmt.Append(nil, seed), Version: dated(0), Signer: writerOf(seed)}
		good = append(good, signedBy(seed, ns, r))
		bad = append(bad, signedBy(seed%MaxMembers+1, ns, r)) // by the next member
	}
	for _, batch := range []struct {
		records []dbadapter.Record
		want    wire.Reason
	}{{bad, wire.ReasonSignature}, {good, 0}} {
		m.verified = 0
		for i, r := range batch.records {
			if v := admit(ns, (i*7)%MaxMembers+1, r)[0]; v.Reason != batch.want {
				t.Fatalf("signed for member %d: reason %s, want %s", i+1, v.Reason, batch.want)
			}
		}
		if m.verified != MaxMembers {
			t.Errorf("%d signatures were checked for %d records", m.verified, MaxMembers)
		}
	}
	if got := len(records(ns)); got != MaxMembers {
		t.Errorf("%d records are held", got)
	}
}

// Versions from elsewhere are known to the clock before they are committed: a
// write that follows them, of any key, is later.
func TestAdmissionObservesTheClock(t *testing.T) {
	m, ns := newNotes(Policy{})
	ahead := signedBy(writer, ns, dbadapter.Record{Key: []byte("k"), Version: at(writer, 4*time.Minute)})
	tooFar := signedBy(writer, ns, dbadapter.Record{Key: []byte("l"), Version: at(writer, 6*time.Minute)})
	m.apply = func(store dbadapter.Namespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
		if got := dbadapter.Timestamp(ns.clock.Latest()); got < ahead.Version.Clock {
			t.Errorf("at the commit of %s the clock says %x", ahead.Version, got)
		}
		return store.Apply(t.Context(), writes)
	}
	if v := admit(ns, writer, ahead, tooFar); v[0].Reason != 0 || v[1].Reason != wire.ReasonClock {
		t.Fatal(v)
	}
	m.apply = nil
	if v := must(put(ns, "another key", "")); v.Compare(ahead.Version) <= 0 || v.Clock > ahead.Version.Clock+10 {
		t.Errorf("%s was written after %s was admitted", v, ahead.Version)
	}
	// One that was refused does not move it.
	if v := must(put(ns, "a third key", "")); v.Clock >= tooFar.Version.Clock {
		t.Errorf("a refused version moved the clock to %s", v)
	}
	// After a restart the store tells the clock what is held.
	succeeds(t, ns.Close())
	again := must(m.open(ns.Sets()[0].Keys.Secret, ns.state.Load()))
	if v := must(put(again, "a fourth key", "")); v.Compare(ahead.Version) <= 0 || v.Incarnation == ns.incarnation {
		t.Errorf("%s was written after a restart; %s is held", v, ahead.Version)
	}
}

// More records than one transaction takes are committed in several; the verdicts
// keep the order. A store that fails is an error.
func TestAdmissionInBatches(t *testing.T) {
	m, ns := newNotes(Policy{Unsigned: true})
	var many []dbadapter.Record
	const n = 2*dbadapter.MaxBatch + 10
	for i := range n {
		r := dbadapter.Record{Key: fmt.Append(nil, i), Version: at(writer, 0)}
		if i%3 == 0 {
			r.Version = at(writer, time.Hour)
		}
		many = append(many, r)
	}
	many = append(many, many[1])
	m.apply = func(store dbadapter.Namespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
		if len(writes) > admitMost {
			t.Errorf("%d records are committed at once; a write of this node waits for all of them", len(writes))
		}
		return store.Apply(t.Context(), writes)
	}
	verdicts := admit(ns, writer, many...)
	for i, v := range verdicts[:n] {
		if refused := i%3 == 0; refused != (v.Reason == wire.ReasonClock) || refused == (v.Result == dbadapter.Applied) {
			t.Fatalf("record %d: %+v", i, v)
		}
	}
	if v := verdicts[n]; v.Reason != 0 || v.Result != dbadapter.Same {
		t.Errorf("the record that is there: %+v", v)
	}
	failure := errors.New("the disk is full")
	m.apply = func(dbadapter.Namespace, []dbadapter.Write) ([]dbadapter.Outcome, error) { return nil, failure }
	wantErr(t, second(ns.Sets()[0].Admit(t.Context(), idOf(writer), 0, noTerm, hashed(ns, many[1]))()), failure, "a store that fails")
}

// What this node writes is later than what it was sent, also where no greeting has
// told of the writer's clock.
func TestWritesFollowWhatIsAdmitted(t *testing.T) {
	_, ns := newNotes(Policy{})
	theirs := at(writer, DefaultMaxSkew/2)
	if v := admit(ns, writer, signedBy(writer, ns, dbadapter.Record{Key: []byte("theirs"), Version: theirs}))[0]; v.Reason != 0 {
		t.Fatalf("declined: %s", v.Reason)
	}
	if mine := must(put(ns, "mine", "")); mine.Clock <= theirs.Clock {
		t.Errorf("the version is %s, after %s", mine, theirs)
	}
}

// A list that comes between the examination and the commit counts: a record whose
// writer has lost the right meanwhile stays outside, the others are let in.
func TestListBetweenExaminationAndCommit(t *testing.T) {
	_, ns := newNotes(Policy{})
	late := at(writer, time.Minute)
	commit := ns.Sets()[0].Admit(t.Context(), idOf(1), 0, noTerm, hashed(ns,
		signedBy(writer, ns, dbadapter.Record{Key: []byte("removed"), Version: late}),
		signedBy(other, ns, dbadapter.Record{Key: []byte("stays"), Version: at(other, time.Minute)})))
	succeeds(t, setRole(ns, idOf(writer), RoleRead))
	verdicts := must(commit())
	if verdicts[0].Reason != wire.ReasonWriter || verdicts[1].Result != dbadapter.Applied {
		t.Errorf("%+v", verdicts)
	}
}

// A list that comes between two slices of one commit counts for the second one: a sweep
// for it may have been and gone.
func TestListBetweenSlices(t *testing.T) {
	m, ns := newNotes(Policy{})
	records := make([]dbadapter.Record, admitMost+1)
	for i := range records {
		// Later than the list, which is later than what it has seen.
		later := time.Minute + time.Duration(i/admitMost)*time.Minute
		records[i] = signedBy(writer, ns, dbadapter.Record{Key: fmt.Append(nil, i), Version: at(writer, later)})
	}
	commits := 0
	m.apply = func(store dbadapter.Namespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
		if commits++; commits == 1 {
			succeeds(t, setRole(ns, idOf(writer), RoleRead))
		}
		return store.Apply(t.Context(), writes)
	}
	verdicts := admit(ns, writer, records...)
	for i, v := range verdicts {
		if v.Reason == 0 && i >= admitMost || v.Reason != 0 && (v.Reason != wire.ReasonWriter || i < admitMost) {
			t.Fatalf("record %d: %+v", i, v)
		}
	}
}

// A commit that has looked at the list, and lands once a sweep for the next list has read
// the records, makes another sweep due.
func TestListBetweenCommitAndSweep(t *testing.T) {
	m, ns := newNotes(Policy{})
	succeeds(t, second(ns.Sets()[0].gc.Sweep(t.Context())))
	commit := ns.Sets()[0].Admit(t.Context(), idOf(1), 0, noTerm, hashed(ns,
		signedBy(writer, ns, dbadapter.Record{Key: []byte("k"), Version: at(writer, time.Minute)})))
	looked, land := make(chan struct{}), make(chan struct{})
	m.apply = func(store dbadapter.Namespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
		close(looked)
		<-land
		return store.Apply(t.Context(), writes)
	}
	m.clock = m.clock.Add(30 * time.Second) // the sweep raises the ceiling; the record is later
	var landed sync.WaitGroup
	m.raising = func() {
		m.raising = nil
		landed.Go(func() {
			succeeds(t, second(commit()))
		})
		<-looked
		succeeds(t, setRole(ns, idOf(writer), RoleRead))
	}
	succeeds(t, second(ns.Sets()[0].gc.Sweep(t.Context())))
	close(land)
	landed.Wait()
	m.apply = nil
	if !ns.Sets()[0].gc.Waiting().SweepDue(0, ns.node.Now(), false) {
		t.Error("no sweep is due, and the record of a writer that lost its right stays")
	}
}

// What a member writes after a record that a former member has written wins over it, also where a host
// adopts that later, and has not heard of the write; the former member's record is a listed conflict.
func TestAdoptionKeepsTheOrder(t *testing.T) {
	c := newCrew(t, 3)
	c.put(0, "key", "1")
	c.round()
	succeeds(t, c.ns[0].Remove(t.Context(), c.machines[2].ID, false))
	c.pass(time.Second)
	c.put(2, "key", "of a former member")
	if err := c.turn(1, 2); err != nil { // neither has heard
		t.Fatal(err)
	}
	c.pass(time.Second)
	c.put(0, "key", "later")
	c.pass(time.Minute)
	set := c.ns[1].Sets()[0]
	r := must(set.Get([]byte("key")))
	succeeds(t, set.adopt(t.Context(), &r))
	c.round(0, 1)
	c.round(0, 1)
	listed := 0
	for i := range 2 {
		if r := must(get(c.ns[i], "key")); string(r.Value) != "later" {
			t.Errorf("%d holds %q of %s", i, r.Value, r.Version)
		}
		listed += c.ns[i].Sets()[0].Kept()
	}
	if listed == 0 {
		t.Error("what the former member wrote is listed nowhere")
	}
}
