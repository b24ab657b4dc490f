package main

import (
	"fmt"
	"hash/fnv"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/syncd-io/syncd/iblt"
)

// simulate runs trials of a setting on all cores, and calls progress now and
// then with how many are done.
func simulate(s setting, trials int, seed uint64, progress func(done int)) (outcome, error) {
	// Settings get seeds that have nothing to do with each other.
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %+v", seed, s)
	own := h.Sum64()
	config := iblt.TableConfig{Cells: s.cells, Hashes: hashes, Seed: own}
	if _, err := iblt.NewTable(config); err != nil {
		return outcome{}, err
	}
	var (
		next, done atomic.Int64
		mu         sync.Mutex // guards total and progress
		total      outcome
		workers    sync.WaitGroup
	)
	for range min(runtime.GOMAXPROCS(0), trials) {
		workers.Go(func() {
			t, err := iblt.NewTable(config)
			if err != nil {
				panic(err) // it was made above
			}
			var mine outcome
			for {
				number := next.Add(1)
				if number > int64(trials) {
					break
				}
				mine.add(s.trial(t, own, uint64(number)))
				if n := done.Add(1); progress != nil && mu.TryLock() {
					progress(int(n))
					mu.Unlock()
				}
			}
			mu.Lock()
			total.add(mine)
			mu.Unlock()
		})
	}
	workers.Wait()
	return total, nil
}
