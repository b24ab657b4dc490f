package trials

import (
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestEachTrialRunsOnce(t *testing.T) {
	for _, n := range []int{0, 1, 1000} {
		ran := make([]int, n)
		workers := make(chan struct{}, n)
		err := Run(n, func() func(int) error {
			workers <- struct{}{}
			return func(number int) error { ran[number]++; return nil }
		})
		if err != nil || slices.ContainsFunc(ran, func(times int) bool { return times != 1 }) {
			t.Errorf("%d trials: %v %v", n, ran, err)
		}
	}
}

// The trials that follow the broken one take a second of virtual time, which passes
// only once the error is known.
func TestAnErrorEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		var more atomic.Int64
		err := Run(1_000_000, func() func(int) error {
			return func(number int) error {
				if number == 7 {
					return broken
				}
				if number > 7 {
					time.Sleep(time.Second)
					more.Add(1)
				}
				return nil
			}
		})
		if others := int64(runtime.GOMAXPROCS(0) - 1); err != broken || more.Load() > others {
			t.Errorf("the error is %v; %d more trials have run on %d other cores", err, more.Load(), others)
		}
	})
}
