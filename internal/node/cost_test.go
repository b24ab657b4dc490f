package node

import (
	"testing"

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
