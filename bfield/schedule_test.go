package bfield

import (
	"errors"
	"testing"
	"time"
)

// TestSchedule plays what is written and how repairs end, and says when each is due, in
// seconds; 0 is never.
func TestSchedule(t *testing.T) {
	start := time.Unix(0, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	bad := errors.New("a bad sector")
	s := schedule{delay: 10 * time.Second}
	for _, step := range []struct {
		what   string
		now    int
		took   int // of a repair that ends; 0: something is written
		urgent bool
		err    error
		due    int
	}{
		{what: "the first insertion waits for the delay", now: 1, due: 11},
		{what: "the next one does not put it off", now: 5, due: 11},
		{what: "a repair of two seconds", now: 13, took: 2},
		{what: "the background rests for thirty", now: 14, due: 43},
		{what: "but not if it is urgent", now: 15, urgent: true, due: 15},
		{what: "an urgent repair of two seconds", now: 17, took: 2, urgent: true},
		{what: "it adds no rest, and takes away none", now: 20, due: 43},
		{what: "a repair that fails is tried again after the rest", now: 44, took: 1, err: bad, due: 59},
		{what: "an urgent one waits for the delay alone", now: 45, urgent: true, due: 54},
		{what: "it fails as well", now: 55, took: 1, urgent: true, err: bad, due: 65},
		{what: "insertions do not hurry it", now: 56, urgent: true, due: 65},
		{what: "it ends well", now: 66, took: 1, urgent: true},
		{what: "after the rest the delay counts", now: 67, due: 77},
	} {
		if step.took == 0 {
			s.written(at(step.now), step.urgent)
		} else {
			s.ended(at(step.now), time.Duration(step.took)*time.Second, step.urgent, step.err)
		}
		if want := at(step.due); step.due == 0 && !s.due.IsZero() || step.due != 0 && !s.due.Equal(want) {
			t.Errorf("%s: at %d s, due at %v", step.what, step.now, s.due.Sub(start))
		}
	}
}
