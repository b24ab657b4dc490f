package peer

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// clock is the hybrid logical clock of one namespace (Kulkarni et al.,
// "Logical Physical Clocks", 2014). Its readings grow strictly and exceed every
// version seen in the namespace, whatever the machine's clock does. Each
// namespace has one of its own, so that a peer in a namespace of large skew
// cannot push the versions of another ahead.
type clock struct {
	now func() time.Time

	mu   sync.Mutex
	last dbadapter.Clock // no reading given or seen is greater
}

// read gives the next reading. The counter of 16 bits overflows into the
// milliseconds, which is right: readings only have to grow.
func (c *clock) read() dbadapter.Clock {
	physical := dbadapter.ClockAt(c.now())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(physical, c.last+1)
	return c.last
}

// observe makes later readings exceed a version's.
func (c *clock) observe(seen dbadapter.Clock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last, seen)
}

// checkTime is the rule for versions that come from elsewhere: not before
// dbadapter.Epoch, and not further ahead of the clock than the skew.
func checkTime(t, now time.Time, skew time.Duration) error {
	switch {
	case t.Before(dbadapter.Epoch):
		return fmt.Errorf("%w: %s is before %d", ErrFutureVersion, t.Format(time.RFC3339), dbadapter.Epoch.Year())
	case t.After(now.Add(skew)):
		return fmt.Errorf("%w: %s is more than %s, which the namespace allows, ahead of this node's clock, %s",
			ErrFutureVersion, t.Format(time.RFC3339), skew, now.UTC().Format(time.RFC3339))
	}
	return nil
}

// newIncarnation draws the 64 bits that tell this opening of a namespace from
// every other, also from one on a restored copy of its data, and from one
// before it was dropped and joined again.
func newIncarnation() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return binary.BigEndian.Uint64(b[:])
}
