package machine

import (
	"sync"
	"time"
)

// Clock is a clock that only goes forward. It goes on while the machine sleeps, which the
// monotonic clock of some systems does not. It takes the longer of what the two clocks say
// has passed. A wall clock that is set forward makes what was heard old at once.
type Clock struct {
	read func() time.Time // time.Now, but for tests

	mu   sync.Mutex // guards what follows
	last time.Time
	at   time.Duration
}

// Elapsed is the time that has passed since the first call.
func (c *Clock) Elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Under the lock: a time that was read before another's would pass once more after it.
	read := c.read
	if read == nil {
		read = time.Now
	}
	now := read()
	if !c.last.IsZero() {
		c.pass(now.Sub(c.last), now.Round(0).Sub(c.last.Round(0)))
	}
	c.last = now
	return c.at
}

// pass lets time pass, as the monotonic clock and the wall clock say. mu is held.
func (c *Clock) pass(monotonic, wall time.Duration) { c.at += max(monotonic, wall, 0) }
