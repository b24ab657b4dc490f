package node

import (
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/reconcile/wire"
)

// Polls that wait take places of their own: so many of one peer, and so many in all.
func TestWaitingPollsAreBounded(t *testing.T) {
	var r questions
	var over []func()
	park := func(id ID) bool {
		release, ok := r.park(id)
		if ok {
			over = append(over, release)
		}
		return ok
	}
	for i := range MaxWaiting + 1 {
		if got := park("a peer"); got != (i < MaxWaiting) {
			t.Errorf("poll %d of a peer waits: %v", i, got)
		}
	}
	for i := MaxWaiting; i <= MaxWaitingInAll; i++ {
		if got := park(ID(fmt.Sprint("peer ", i))); got != (i < MaxWaitingInAll) {
			t.Errorf("poll %d waits: %v", i, got)
		}
	}
	for range MaxRouted {
		if _, ok := r.take("a peer", wire.SubjectRecord, 0); !ok {
			t.Error("a question finds no place beside polls that wait")
		}
	}
	for _, release := range over {
		release()
	}
	if r.waits.all != 0 || len(r.waits.of) != 0 || !park("a peer") {
		t.Errorf("once they are over %d wait, of %d peers", r.waits.all, len(r.waits.of))
	}
}
