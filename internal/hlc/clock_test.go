package hlc

import (
	"errors"
	"sync"
	"testing"
	"time"
)

// A clock's readings grow, whatever the machine's clock does, and through the
// overflow of the counter.
func TestClockGrows(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	c := New(func() time.Time { return now })
	last := c.Read()
	if last != At(now) {
		t.Errorf("first reading %x", last)
	}
	for range 1 << 17 { // twice over the counter
		next := c.Read()
		if next <= last {
			t.Fatalf("%x after %x", next, last)
		}
		last = next
	}
	if ahead := last.Time().Sub(now); ahead != 2*time.Millisecond {
		t.Errorf("%s ahead", ahead)
	}
	c.Observe(last + 1000)
	now = now.Add(-time.Hour)
	if next := c.Read(); next != last+1001 {
		t.Errorf("after a version from elsewhere %x, want %x", next, last+1001)
	}
	now = now.Add(2 * time.Hour)
	if next := c.Read(); next != At(now) {
		t.Errorf("with the clock right again %x", next)
	}
}

func TestClockConcurrent(t *testing.T) {
	c := New(func() time.Time { return time.UnixMilli(1_800_000_000_000) })
	var (
		mu   sync.Mutex
		seen = map[Timestamp]bool{}
		wg   sync.WaitGroup
	)
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				at := c.Read()
				mu.Lock()
				if seen[at] {
					t.Errorf("%x was read twice", at)
				}
				seen[at] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// The bounds themselves are allowed; a nanosecond beyond them is not.
func TestCheck(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	const skew = time.Minute
	for _, c := range []struct {
		name string
		at   time.Time
		ok   bool
	}{
		{"now", now, true},
		{"the skew ahead", now.Add(skew), true},
		{"beyond it", now.Add(skew + 1), false},
		{"the epoch", Epoch, true},
		{"before it", Epoch.Add(-1), false},
	} {
		if err := Check(c.at, now, skew); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrOutOfBounds) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestTimestamp(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 8_000_000, time.UTC)
	c := At(at)
	if !c.Time().Equal(at) || !(c + 65535).Time().Equal(at) || (c + 65536).Time().Equal(at) {
		t.Errorf("the clock of %v reads %v, with the greatest counter %v, beyond it %v", at, c.Time(), (c + 65535).Time(), (c + 65536).Time())
	}
}
