package syncing

import (
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A peer has so many questions at once, so many a second, and no more than its share of
// all.
func TestQuestionsAreBounded(t *testing.T) {
	var q Questions
	var open []func()
	take := func(id roster.ID, at time.Duration) bool {
		release, ok := q.Take(id, wire.SubjectKey, at)
		if ok {
			open = append(open, release)
		}
		return ok
	}
	for peer := range MaxQuestionsInAll / MaxQuestions {
		for i := range MaxQuestions + 1 {
			if got := take(roster.ID(fmt.Sprint(peer)), 0); got != (i < MaxQuestions) {
				t.Fatalf("question %d of peer %d: %t", i, peer, got)
			}
		}
	}
	if take("another", 0) {
		t.Error("more than all")
	}
	for _, release := range open {
		release()
	}
	open = nil
	quick := func(at time.Duration) (n int) {
		for ; take("quick", at); n++ {
			open[len(open)-1]()
		}
		return n
	}
	if n := quick(0); n != QuestionBurst {
		t.Errorf("%d questions at once", n)
	}
	if n := quick(time.Second); n != QuestionRate {
		t.Errorf("%d questions a second later", n)
	}
	if n := quick(time.Hour); n != QuestionBurst {
		t.Errorf("%d questions an hour later", n)
	}
}
