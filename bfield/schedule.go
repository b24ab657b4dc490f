package bfield

import (
	"slices"
	"time"
)

// schedule says when the background repairs next. It is a function of the times of
// writes and of the ends of repairs.
type schedule struct {
	delay  time.Duration
	due    time.Time // of the next repair; zero: nothing was written since the last one
	rested time.Time // before it no repair is due, unless it is urgent
	failed time.Time // before it no repair is due at all: the last one failed
}

// restPart: between two repairs that are not urgent, the background rests so many times
// as long as the first one took. Each goes through the whole log, however few keys are
// fresh. What is urgent is paid by the many insertions before it.
const restPart = 15

// written notes that something was written.
func (s *schedule) written(now time.Time, urgent bool) {
	at := latest(now.Add(s.delay), s.rested, s.failed)
	if urgent {
		at = latest(now, s.failed)
	}
	if s.due.IsZero() || at.Before(s.due) {
		s.due = at
	}
}

// ended notes that a repair ended which took so long. One that failed is tried again:
// the disk may be full for a while.
func (s *schedule) ended(now time.Time, took time.Duration, urgent bool, err error) {
	s.due = time.Time{}
	if !urgent {
		s.rested = now.Add(restPart * took)
	}
	if err != nil {
		s.failed = now.Add(s.delay)
		s.due = latest(s.failed, s.rested)
	}
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }
