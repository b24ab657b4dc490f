package machine

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The time for which a machine sleeps passes, and none passes twice or backwards.
func TestClock(t *testing.T) {
	var c Clock
	for _, step := range []struct{ monotonic, wall, want time.Duration }{
		{time.Second, time.Second, time.Second},
		{time.Second, time.Hour, time.Hour + time.Second},             // it slept
		{time.Second, -time.Hour, time.Hour + 2*time.Second},          // its clock was set back
		{-time.Second, -time.Second, time.Hour + 2*time.Second},       // a clock that goes back
		{time.Second, time.Second - 3, time.Hour + 3*time.Second},     // its clock is being slowed down
		{time.Second, time.Second + 5, time.Hour + 4*time.Second + 5}, // or sped up
		{0, 0, time.Hour + 4*time.Second + 5},
	} {
		if c.pass(step.monotonic, step.wall); c.at != step.want {
			t.Errorf("after %v and %v it is %v, not %v", step.monotonic, step.wall, c.at, step.want)
		}
	}
	first := c.Elapsed()
	if second := c.Elapsed(); second < first {
		t.Errorf("%v, then %v", first, second)
	}
}

// What many read at once passes once: a time that is read before another one is not noted after it.
func TestClockAtOnce(t *testing.T) {
	const readers, times = 8, 500
	var reads atomic.Int64
	begun := time.Now().Round(0)
	c := Clock{read: func() time.Time {
		now := begun.Add(time.Duration(reads.Add(1)) * time.Second)
		runtime.Gosched() // another one reads meanwhile, if it may
		return now
	}}
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			last := time.Duration(-1)
			for range times {
				now := c.Elapsed()
				if now < last {
					t.Errorf("%v, then %v", last, now)
				}
				last = now
			}
		})
	}
	all.Wait()
	if want := (readers*times - 1) * time.Second; c.at != want {
		t.Errorf("%v have passed, and the clock says %v", want, c.at)
	}
}
