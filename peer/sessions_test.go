package peer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// However many strangers are about to say something, a member gets its turn.
func TestCrowdOfStrangersKeepsNoMemberOut(t *testing.T) {
	a, b := openForTest(t, Config{}), openForTest(t, Config{})
	sa, err := a.CreateNamespace(t.Context(), "notes", Policy{})
	if err != nil {
		t.Fatal(err)
	}
	sb := joinForTest(t, sa, b)
	var leave []func()
	for i := 0; ; i++ {
		done, ok := a.sessions.greet(ID(fmt.Sprint(i)), a.isMember(ID(fmt.Sprint(i))))
		if !ok {
			break
		}
		leave = append(leave, done)
	}
	if len(leave) != greetings {
		t.Errorf("%d strangers were let in", len(leave))
	}
	if r, err := sb.Sync(t.Context(), a.ID(), SyncOptions{}); err != nil || !r.Verified {
		t.Errorf("a member's sync: %+v, %v", r, err)
	}
	// A node that would join is a stranger, and must wait.
	c := openForTest(t, Config{})
	ticket, err := sa.Invite(t.Context(), InviteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Join(t.Context(), ticket); !errors.Is(err, ErrUnreachable) {
		t.Errorf("a stranger too many: %v", err)
	}
	for _, done := range leave {
		done()
	}
	if _, err := c.Join(t.Context(), ticket); err != nil {
		t.Errorf("after the crowd: %v", err)
	}
	waitFor(t, "all have left", func() bool {
		a.sessions.mu.Lock()
		defer a.sessions.mu.Unlock()
		return a.sessions.members+a.sessions.others+len(a.sessions.greeting) == 0
	})
}

// Of two nodes that begin the same sync, the one with the higher id waits for
// the other; a dry run waits for nobody.
func TestHigherIDWaits(t *testing.T) {
	a, b := openForTest(t, Config{}), openForTest(t, Config{})
	if a.self.id > b.self.id {
		a, b = b, a
	}
	sa, err := a.CreateNamespace(t.Context(), "notes", Policy{})
	if err != nil {
		t.Fatal(err)
	}
	sb := joinForTest(t, sa, b)
	done := a.sessions.calling(sa.ID(), b.self.id)
	if _, err := sb.Diff(t.Context(), a.self.id, SyncOptions{}); err != nil {
		t.Errorf("a dry run: %v", err)
	}
	ended := make(chan error, 1)
	go func() { _, err := sb.Sync(t.Context(), a.self.id, SyncOptions{}); ended <- err }()
	waitFor(t, "the sync is put off", func() bool {
		return slices.ContainsFunc(b.RecentSyncs(), func(s SyncRecord) bool { return strings.Contains(s.Error, "busy") })
	})
	done()
	if err := <-ended; err != nil {
		t.Errorf("once the other is over: %v", err)
	}
}

// Two nodes that begin the same sync at once do one of the two.
func TestYields(t *testing.T) {
	s := newSessions(Limits{}.withDefaults())
	ns := dbadapter.NamespaceID{1}
	done := s.calling(ns, "b")
	if !s.yields(ns, "a", "b") {
		t.Error("the higher id must wait for the lower")
	}
	if s.yields(ns, "c", "b") || s.yields(ns, "a", "c") || s.yields(dbadapter.NamespaceID{2}, "a", "b") {
		t.Error("it waits for nothing")
	}
	done()
	if s.yields(ns, "a", "b") || len(s.calls) != 0 {
		t.Error("it waits for what is over")
	}
}

func TestSessionsAreBounded(t *testing.T) {
	s := newSessions(Limits{Sessions: 3, SessionsPerPeer: 2}.withDefaults())
	var release []func()
	take := func(id ID, want bool) {
		t.Helper()
		r, ok := s.accept(id)
		if ok != want {
			t.Errorf("accept %s: %t", id, ok)
		}
		if ok {
			release = append(release, r)
		}
	}
	take("a", true)
	take("a", true)
	take("a", false)
	take("b", true)
	take("c", false)
	for _, r := range release {
		r()
	}
	if s.incoming != 0 || len(s.peers) != 0 {
		t.Errorf("left %d, %v", s.incoming, s.peers)
	}
	take("c", true)
	for range 2 {
		if _, ok := s.greet("a", false); !ok {
			t.Error("greet")
		}
	}
	if _, ok := s.greet("a", false); ok {
		t.Error("one peer greets as often as it likes")
	}
}
