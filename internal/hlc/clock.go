// Package hlc is the hybrid logical clock that makes versions (Kulkarni et al.,
// "Logical Physical Clocks", 2014), and the rule for versions made elsewhere.
// It is pure: the machine's time is handed in, so that a simulator runs the
// code that a node runs.
//
// A clock starts at zero. A node that opens stored records lets its clock observe the
// greatest version among them. Otherwise a machine whose clock was set back would write
// below what it holds.
package hlc

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Epoch is the earliest time that Check lets a version carry.
var Epoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// ErrOutOfBounds: a version too far in the future, or before 2020.
var ErrOutOfBounds = errors.New("the version's time is out of bounds")

// Clock is the hybrid logical clock of one namespace. Its readings grow
// strictly and exceed every version seen in the namespace, whatever the
// machine's clock does. Each namespace has one of its own, so that a peer in a
// namespace of large skew cannot push the versions of another ahead.
//
// It may be used from several goroutines. Make it with New.
type Clock struct {
	now func() time.Time

	mu   sync.Mutex
	last Timestamp // no reading given or seen is greater
}

// New is a clock that has seen nothing, over the machine's time.
func New(now func() time.Time) *Clock { return &Clock{now: now} }

// Read gives the next reading. The counter of 16 bits overflows into the
// milliseconds, which is right: readings only have to grow.
func (c *Clock) Read() Timestamp {
	physical := At(c.now())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(physical, c.last+1)
	return c.last
}

// Observe makes later readings exceed a version's.
func (c *Clock) Observe(seen Timestamp) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last, seen)
}

// Latest is the greatest reading given or seen.
func (c *Clock) Latest() Timestamp {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// Lower makes the next readings follow the machine's time again, and exceed the
// given reading at least. They may repeat what the clock gave before: the caller
// tells versions apart by a new incarnation.
func (c *Clock) Lower(to Timestamp) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = min(c.last, to)
}

// Check is the rule for versions that come from elsewhere: not before
// Epoch, and not further ahead of the machine's time than the skew.
// The error is ErrOutOfBounds.
func Check(t, now time.Time, skew time.Duration) error {
	switch {
	case t.Before(Epoch):
		return fmt.Errorf("%w: %s is before %d", ErrOutOfBounds, t.Format(time.RFC3339), Epoch.Year())
	case t.After(now.Add(skew)):
		return fmt.Errorf("%w: %s is more than %s, which the namespace allows, ahead of this node's clock, %s",
			ErrOutOfBounds, t.Format(time.RFC3339), skew, now.UTC().Format(time.RFC3339))
	}
	return nil
}
