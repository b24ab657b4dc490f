// Package workers shares the work of a build among goroutines.
package workers

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// Most is the most goroutines of a build: each has memory of its own.
const Most = 256

// Of is how many goroutines build if so many are asked for: 0 stands for GOMAXPROCS.
func Of(asked int) (int, error) {
	if asked < 0 || asked > Most {
		return 0, fmt.Errorf("%d workers: 0 to %d are possible", asked, Most)
	}
	if asked == 0 {
		return min(runtime.GOMAXPROCS(0), Most), nil
	}
	return asked, nil
}

// Each calls work(0) … work(n-1), at most workers of them at once.
func Each(workers, n int, work func(i int)) {
	if workers = min(workers, n); workers <= 1 {
		for i := range n {
			work(i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				work(i)
			}
		})
	}
	wg.Wait()
}
