package main

import (
	"fmt"
	"hash/fnv"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/syncd-io/syncd/iblt"
)

// simulate runs trials of a setting on all cores. Each is drawn from a seed made of its
// number, so that the results are the same on any number of them.
func simulate(s setting, n int, seed uint64) (total outcome, err error) {
	// Settings get seeds that have nothing to do with each other.
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %+v", seed, s)
	own := h.Sum64()
	tables := make([]*iblt.Table, min(runtime.GOMAXPROCS(0), n))
	for i := range tables {
		if tables[i], err = iblt.NewTable(iblt.TableConfig{Cells: s.cells, Hashes: hashes, Seed: own}); err != nil {
			return total, err
		}
	}
	var (
		next    atomic.Int64
		workers sync.WaitGroup
		mu      sync.Mutex // guards total
	)
	for _, t := range tables {
		workers.Go(func() {
			for number := next.Add(1); number <= int64(n); number = next.Add(1) {
				o := s.trial(t, own, uint64(number))
				mu.Lock()
				total.add(o)
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return total, nil
}
