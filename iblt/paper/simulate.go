package main

import (
	"fmt"
	"hash/fnv"
	"sync"

	"github.com/syncd-io/syncd/iblt"
	"github.com/syncd-io/syncd/internal/trials"
)

// simulate runs trials of a setting on all cores.
func simulate(s setting, n int, seed uint64) (outcome, error) {
	// Settings get seeds that have nothing to do with each other.
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %+v", seed, s)
	own := h.Sum64()
	config := iblt.TableConfig{Cells: s.cells, Hashes: hashes, Seed: own}
	var (
		mu    sync.Mutex // guards total
		total outcome
	)
	err := trials.Run(n, func() func(int) error {
		t, err := iblt.NewTable(config)
		return func(number int) error {
			if err != nil {
				return err
			}
			o := s.trial(t, own, uint64(1+number))
			mu.Lock()
			defer mu.Unlock()
			total.add(o)
			return nil
		}
	})
	return total, err
}
