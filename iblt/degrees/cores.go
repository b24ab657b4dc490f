package main

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// sample runs trials on all cores and returns what each needed, in their
// order. newWorker makes the function that runs trials on one core.
func sample(trials int, newWorker func() func(number int) (int, error), done func()) ([]int, error) {
	var (
		cells   = make([]int, trials)
		next    atomic.Int64
		workers sync.WaitGroup
		mu      sync.Mutex // guards failed and calls of done
		failed  error
	)
	for range min(runtime.GOMAXPROCS(0), trials) {
		workers.Go(func() {
			work := newWorker()
			for {
				number := int(next.Add(1)) - 1
				if number >= trials {
					return
				}
				n, err := work(number)
				cells[number] = n
				mu.Lock()
				if err != nil && failed == nil {
					failed = err
				}
				stop := failed != nil
				done()
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	workers.Wait()
	return cells, failed
}
