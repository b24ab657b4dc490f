package node

import (
	"context"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/syncing"
)

// A sweep that runs while a member is being admitted collects up to nothing that the new member may
// still write: its first version follows that of its grant.
func TestSweepWhileAMemberIsAdmitted(t *testing.T) {
	a, b := newMachine(1), newMachine(2)
	sa := a.create("things", Policy{})
	must(put(sa, "gone", "x"))
	ticket := invite(sa, RoleWrite)
	swept := make(chan error, 1)
	a.applyControl = func(ns dbadapter.Namespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
		a.applyControl = nil
		a.clock = a.clock.Add(2 * time.Second)
		must(commit(sa.Sets()[0].Delete([]byte("gone"))))
		go func() {
			_, err := sa.Sets()[0].gc.Sweep(context.Background())
			swept <- err
		}()
		select { // the sweep waits for the grant; one that does not has time to end
		case err := <-swept:
			swept <- err
		case <-time.After(100 * time.Millisecond):
		}
		return ns.Apply(context.Background(), writes)
	}
	sb := must(b.join(a, ticket))
	succeeds(t, <-swept)
	must(put(sb, "new", "y"))
	if mine, _, err := b.sync(sb, a, syncing.Ask{}); err != nil || mine.Rejected > 0 {
		t.Errorf("what the new member has written first: %d records were declined, %v", mine.Rejected, err)
	}
}
