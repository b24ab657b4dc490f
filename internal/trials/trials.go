// Package trials runs the trials of a simulation on all cores.
package trials

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Run calls trial(0) … trial(n−1), each once, in any order. newWorker makes the
// function that runs trials on one core. So it may keep memory between them. The first
// error ends the run and is returned.
//
// Draw each trial from a seed made of its number: the results are then the same
// on any number of cores.
func Run(n int, newWorker func() (trial func(number int) error)) error {
	var (
		next    atomic.Int64
		workers sync.WaitGroup
		once    sync.Once
		failed  error
	)
	for range min(runtime.GOMAXPROCS(0), n) {
		workers.Go(func() {
			trial := newWorker()
			for {
				number := next.Add(1) - 1
				if number >= int64(n) {
					return
				}
				if err := trial(int(number)); err != nil {
					once.Do(func() { failed = err })
					next.Store(int64(n))
				}
			}
		})
	}
	workers.Wait()
	return failed
}
