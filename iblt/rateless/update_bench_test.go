package rateless

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"
)

// entry is what one random read-modify-write touches.
type entry [4]uint64

// BenchmarkReplace sets an update of a kept sketch beside the read-modify-writes
// of 32 bytes that it cannot do without, as many as the pairs have cells, in an
// array of as many entries as the sketch has cells. No place depends on what was
// read before, so that the processor may do many at a time:
//
//	uniform  places drawn in registers, each as likely as any other
//	own      the places of the pairs themselves, drawn beforehand, read in order:
//	         most are low and stay in the cache
//
// The pairs change one after the other, 2048 between two looks at the clock, so
// that each of the three finds the cache as it left it.
func BenchmarkReplace(b *testing.B) {
	for _, m := range []int{1 << 14, 1 << 17} {
		b.Run(fmt.Sprintf("M=%d", m), func(b *testing.B) {
			const batch = 2048
			r := rand.New(rand.NewPCG(1, 1))
			s := NewSketch(Key{}, m)
			old, fresh := randomPairs(r, 1<<16), randomPairs(r, 1<<16)
			var own [][]uint32 // of each batch of pairs
			for i := range old {
				fresh[i] = sealed(old[i].Index, r.Uint64N(1<<34))
				s.Add(old[i])
				if i%batch == 0 {
					own = append(own, nil)
				}
				for _, at := range cellsOf(&s.words, old[i].Index, uint64(m)) {
					own[i/batch] = append(own[i/batch], uint32(at))
				}
			}
			entries := make([]entry, m)
			shift := 64 - bits.Len(uint(m-1))
			var replacing, uniform, mapped []time.Duration
			touches, random := 0, uint64(1)
			for i := 0; b.Loop(); i = (i + batch) % len(old) {
				places := own[i/batch]
				touches += len(places)
				times := [4]time.Time{time.Now()}
				for j := i; j < i+batch; j++ {
					s.Replace(old[j], fresh[j])
				}
				times[1] = time.Now()
				for range places {
					random = random*0xd1342543de82ef95 + odd
					e := &entries[random>>shift]
					e[0] += random
					e[1] += random
					e[2] += random
					e[3] += random
				}
				times[2] = time.Now()
				for _, at := range places {
					e := &entries[at]
					e[0] += random
					e[1] += random
					e[2] += random
					e[3] += random
				}
				times[3] = time.Now()
				replacing = append(replacing, times[1].Sub(times[0]))
				uniform = append(uniform, times[2].Sub(times[1]))
				mapped = append(mapped, times[3].Sub(times[2]))
				for j := i; j < i+batch; j++ {
					old[j], fresh[j] = fresh[j], old[j]
				}
			}
			b.ReportMetric(median(replacing)/batch, "ns/replace")
			b.ReportMetric(median(uniform)/batch, "ns/uniform")
			b.ReportMetric(median(mapped)/batch, "ns/own")
			b.ReportMetric(float64(touches)/float64(b.N*batch), "cells/pair")
			b.ReportMetric(0, "ns/op")
		})
	}
}
