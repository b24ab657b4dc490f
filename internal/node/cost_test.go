package node

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/signature"
	"github.com/syncd-io/syncd/internal/syncing"
)

// With a list of 50 members a sync of equal sets carries 600 bytes at the most in
// one round trip, and nothing is said about the list where both have the same one.
func TestCostOfFiftyMembers(t *testing.T) {
	a, b, sa, sb := newPair(RoleWrite)
	for i := range 48 {
		succeeds(t, setRole(sa, idOf(3+i), RoleWrite))
	}
	for i := range 100 {
		must(put(sa, string(rune('a'+i)), "v"))
	}
	for range 1 + syncing.Remembered { // the list, the records, and syncs of equal sets
		succeeds(t, b.turn(sb, a))
	}
	if n, m := len(sa.Members().Members()), len(sb.Members().Members()); n != 50 || m != 50 {
		t.Fatalf("%d and %d members", n, m)
	}
	sync := &call{machine: b, other: a, part: &sb.Sets()[0].Part}
	r, err := sync.part.Plan(a.ID, syncing.Ask{}).Run(t.Context(), sync, nil)
	if err != nil || len(sync.held) != 1 {
		t.Fatalf("%d conversations, %v", len(sync.held), err)
	}
	size := r.WireBytesSent + r.WireBytesReceived
	t.Logf("%d bytes, %d round trips", size, r.Rounds)
	if !r.Verified || r.Differences() > 0 || r.Rounds != 1 || size > 600 {
		t.Errorf("%d bytes; %+v", size, r)
	}
}

// BenchmarkManyMembers times the opening of a namespace with 1,000 members by 5,000
// statements, a change of its list, and a turn where both sides have the same list.
func BenchmarkManyMembers(b *testing.B) {
	m, other := newMachine(1), newMachine(2)
	secret := m.NewSecret()
	ns := must(m.open(secret, must(m.Found(secret, "notes", Policy{}))))
	there := must(other.join(m, invite(ns, RoleWrite)))
	statements := 2
	for round := 0; statements < 5000; round++ {
		for i := 0; i < 998 && statements < 5000; i, statements = i+1, statements+1 {
			if err := setRole(ns, idOf(3+i), []Role{RoleWrite, RoleRead}[round%2]); err != nil {
				b.Fatal(err)
			}
		}
	}
	for range 2 {
		if err := other.turn(there, m); err != nil {
			b.Fatal(err)
		}
	}
	if n := len(there.Members().Members()); n != 1000 {
		b.Fatalf("%d members", n)
	}
	b.Run("turn", func(b *testing.B) {
		for b.Loop() {
			if err := other.turn(there, m); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("change", func(b *testing.B) {
		i := 0
		for b.Loop() {
			if err := setRole(ns, idOf(3), []Role{RoleWrite, RoleRead}[i%2]); err != nil {
				b.Fatal(err)
			}
			i++
		}
	})
	state := there.state.Load()
	other.Forget(there)
	if err := there.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			opened, err := other.open(secret, state)
			if err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			other.Forget(opened)
			if err := opened.Close(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
}

// A single write goes to the store while records from a peer are being committed, and
// the slices behind it are small, until no single writes come any more.
func TestSingleWritesAmongAdmissions(t *testing.T) {
	m, ns := newNotes(Policy{Unsigned: true})
	var many []dbadapter.Record
	for i := range 4*admitMost + 1 {
		many = append(many, dbadapter.Record{Key: fmt.Append(nil, i), Version: at(writer, 0)})
	}
	for _, c := range []struct {
		during []int // the slices during which there is a single write
		sizes  []int
	}{
		{nil, []int{2048, 2048, 2048, 2048, 1}},
		{[]int{0}, []int{2048, 64, 128, 256, 512, 1024, 2048, 2048, 65}},
		{[]int{0, 1, 2, 5}, []int{2048, 64, 64, 64, 128, 256, 64, 128, 256, 512, 1024, 2048, 1537}},
	} {
		var sizes []int
		m.apply = func(store dbadapter.Namespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
			if len(writes) > 1 || writes[0].Record.Version.Writer == writerOf(writer) {
				sizes = append(sizes, len(writes))
				if slices.Contains(c.during, len(sizes)-1) {
					if !ns.Sets()[0].commits.lock.TryRLock() {
						t.Fatal("a single write waits for the commit of records from a peer before it goes to the store")
					}
					ns.Sets()[0].commits.RUnlock()
					must(put(ns, fmt.Sprint("put ", len(sizes)), ""))
				}
			}
			return store.Apply(t.Context(), writes)
		}
		for _, v := range admit(ns, writer, many...) {
			if v.Result != dbadapter.Applied && v.Result != dbadapter.Same {
				t.Fatal(v)
			}
		}
		if !slices.Equal(sizes, c.sizes) {
			t.Errorf("with single writes during %v: slices of %v, not %v", c.during, sizes, c.sizes)
		}
		m.apply = nil
	}
}

// The signatures of records from a peer are verified in one piece where other records are
// examined too, and else in pieces for the processors; while single writes come, in pieces
// as small as that takes no longer than a writer may wait for.
func TestVerifiedAmongSingleWrites(t *testing.T) {
	m, ns := newNotes(Policy{})
	var many []dbadapter.Record
	for i := range 2 * verifiedAlone {
		many = append(many, signedBy(writer, ns, dbadapter.Record{Key: fmt.Append(nil, i), Version: at(writer, 0)}))
	}
	largest := func() (n int) {
		verify := m.Verify
		defer func() { m.Verify = verify }()
		m.Verify = func(checks []signature.Check) []bool {
			n = max(n, len(checks))
			return verify(checks)
		}
		admit(ns, writer, many...)
		return n
	}
	if n := largest(); n != verifiedAlone {
		t.Errorf("without single writes: %d at once, not %d", n, verifiedAlone)
	}
	ns.Sets()[0].examining.Add(1)
	if n := largest(); n != len(many) {
		t.Errorf("beside others: %d at once, not %d", n, len(many))
	}
	must(put(ns, "single", ""))
	if n := largest(); n != verifiedLeast {
		t.Errorf("with single writes: %d at once, not %d", n, verifiedLeast)
	}
}

// A single write is signed in its turn; the writes of a batch are not.
func TestSignedInTurn(t *testing.T) {
	m, ns := newNotes(Policy{})
	turns := 0
	m.Turn = func(fn func()) {
		turns++
		fn()
	}
	must(put(ns, "single", ""))
	if turns != 1 {
		t.Errorf("%d turns for a single write", turns)
	}
	a := must(ns.Sets()[0].Write(Draft{Record: dbadapter.Record{Key: []byte("one")}}, Draft{Record: dbadapter.Record{Key: []byte("two")}}))
	writes := must(a.Writes())
	if turns != 1 || !ns.Sets()[0].Signed(ns.node.ID, &writes[0].Record.Record) || !ns.Sets()[0].Signed(ns.node.ID, &writes[1].Record.Record) {
		t.Errorf("a batch: %d turns, %+v", turns-1, writes)
	}
}

// Slices stay small between two bursts of single writes, and grow a second after the
// last.
func TestPaceAmongBursts(t *testing.T) {
	var p pace
	singles, now := uint64(0), time.Second
	expect := func(want ...int) {
		t.Helper()
		for _, size := range want {
			if got := p.next(singles, now, 64, 512); got != size {
				t.Fatalf("at %v, with %d single writes: %d, not %d", now, singles, got, size)
			}
			now += time.Millisecond
		}
	}
	expect(512, 512)
	for range 3 {
		singles++
		expect(64, 64, 64, 64)
		now += 900 * time.Millisecond
		expect(64)
	}
	now += 100 * time.Millisecond
	expect(128, 256, 512, 512)
}

// A record from a peer that comes between the making of a single write and its commit
// overtakes it where it is later, as the clock of its writer may be ahead; the write is
// made anew. Where it is earlier, it is a conflict that is kept: the writer of the one
// could not see the other.
func TestAdmittedMeanwhile(t *testing.T) {
	m, ns := newNotes(Policy{})
	ns.Sets()[0].gc.Waiting().Begin(noon) // nothing waits to be collected, so that no admission asks what does
	for name, c := range map[string]struct {
		version dbadapter.Version
		tries   int
		kept    int
	}{
		"later":   {at(writer, DefaultMaxSkew/2), 2, 0},
		"earlier": {at(writer, -DefaultMaxSkew), 1, 1},
	} {
		theirs := signedBy(writer, ns, dbadapter.Record{Key: []byte(name), Value: []byte("theirs"), Version: c.version})
		before, tries := ns.Sets()[0].Store.KeptCount(dbadapter.KeptConflict), 0
		m.apply = func(store dbadapter.Namespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
			if writes[0].Record.Version.Writer == ns.self {
				if tries++; tries == 1 {
					if v := admit(ns, writer, theirs)[0]; v.Result != dbadapter.Applied {
						t.Errorf("%s: %+v", name, v)
					}
				}
			}
			return store.Apply(t.Context(), writes)
		}
		v := must(put(ns, name, "ours"))
		m.apply = nil
		if r := must(get(ns, name)); string(r.Value) != "ours" || r.Version != v || v.Compare(c.version) <= 0 || tries != c.tries {
			t.Errorf("%s: after %d tries %+v is held, written as %s", name, tries, r, v)
		}
		if kept := ns.Sets()[0].Store.KeptCount(dbadapter.KeptConflict) - before; kept != c.kept {
			t.Errorf("%s: %d conflicts are kept", name, kept)
		}
	}
}
