package main

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"syscall"

	"github.com/syncd-io/syncd/bfield"
)

// times compares what a look-up takes where the windows lie anywhere and where they lie in
// one line, of as many more bits as the same rate takes, beside a Go map. All are asked
// for the same keys, turn after turn: the processors' time, medians.
func times(keys, turns int, r *rand.Rand) {
	fmt.Printf("| θ, α, %d keys | anywhere | in one line, of more bits | Go map | line / anywhere | line / map |\n|---|---|---|---|---|---|\n", keys)
	const asked = 200_000
	held := make([]uint64, keys)
	values := make(map[uint64]uint16, keys)
	for i := range held {
		held[i] = r.Uint64()
		values[held[i]] = uint16(i)
	}
	for _, c := range []struct {
		values uint64
		alpha  int
	}{{16, 8}, {256, 8}} {
		alpha := math.Ldexp(1, -c.alpha)
		p, err := bfield.NewPlan(bfield.Config{Keys: uint64(keys), Values: c.values, FalsePositive: alpha})
		if err != nil {
			panic(err)
		}
		size := p.CellsPerKey * float64(p.Kappa)
		anywhere := newField(size*float64(keys), p.Hashes, p.Nu, false)
		line := newField(lineBits(p, alpha)*float64(keys), p.Hashes, p.Nu, true)
		for i, k := range held {
			marker, err := bfield.Encode(uint64(i)%c.values+1, p.Nu, p.Kappa)
			if err != nil {
				panic(err)
			}
			anywhere.insert(k, marker)
			line.insert(k, marker)
		}
		ways := []func(k uint64) uint64{anywhere.common, line.common, func(k uint64) uint64 { return uint64(values[k]) }}
		took, sum := make([][]float64, len(ways)), 0
		ask := make([]uint64, asked)
		for range turns {
			for i := range ask {
				ask[i] = held[r.IntN(keys)]
			}
			for i, way := range ways {
				begin := processorTime()
				for _, k := range ask {
					sum += bits.OnesCount64(way(k))
				}
				took[i] = append(took[i], float64(processorTime()-begin)/asked)
			}
		}
		if sum == 0 {
			panic("nothing was found")
		}
		var median [3]float64
		for i, t := range took {
			slices.Sort(t)
			median[i] = t[len(t)/2]
		}
		fmt.Printf("| %d, 2^-%d | %.0f ns | %.0f ns | %.0f ns | %.2f | %.2f |\n", c.values, c.alpha, median[0], median[1], median[2], median[1]/median[0], median[1]/median[2])
	}
}

// processorTime is what this process has taken of all processors so far, in nanoseconds.
func processorTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
