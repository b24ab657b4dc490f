package peer

import (
	"errors"
	"fmt"
	"testing"
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
