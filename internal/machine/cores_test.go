package machine

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// As many at once run in turn as there are turns, and all do at last.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const atOnce, all = 2, 10
		turns := make(Turns, atOnce)
		var running, ran atomic.Int32
		next := make(chan struct{})
		var callers sync.WaitGroup
		for range all {
			callers.Go(func() {
				turns.Run(func() {
					running.Add(1)
					<-next
					running.Add(-1)
					ran.Add(1)
				})
			})
		}
		for left := all; left > 0; left-- {
			synctest.Wait()
			if n := int(running.Load()); n != min(atOnce, left) {
				t.Errorf("%d run at once where %d are left, not %d", n, left, min(atOnce, left))
			}
			next <- struct{}{}
		}
		callers.Wait()
		if n := ran.Load(); n != all {
			t.Errorf("%d of %d have run", n, all)
		}
	})
}
