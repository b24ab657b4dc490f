package peer

import (
	"testing"
	"time"
)

// The time for which a machine sleeps passes, and none passes twice or backwards.
func TestWakeful(t *testing.T) {
	var c wakeful
	for _, step := range []struct{ monotonic, wall, want time.Duration }{
		{time.Second, time.Second, time.Second},
		{time.Second, time.Hour, time.Hour + time.Second},             // it slept
		{time.Second, -time.Hour, time.Hour + 2*time.Second},          // its clock was set back
		{-time.Second, -time.Second, time.Hour + 2*time.Second},       // two calls changed places
		{time.Second, time.Second - 3, time.Hour + 3*time.Second},     // its clock is being slowed down
		{time.Second, time.Second + 5, time.Hour + 4*time.Second + 5}, // or sped up
		{0, 0, time.Hour + 4*time.Second + 5},
	} {
		if c.pass(step.monotonic, step.wall); c.at != step.want {
			t.Errorf("after %v and %v it is %v, not %v", step.monotonic, step.wall, c.at, step.want)
		}
	}
	first := c.now()
	if second := c.now(); second < first {
		t.Errorf("%v, then %v", first, second)
	}
}
