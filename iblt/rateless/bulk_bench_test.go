//go:build unix

package rateless

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"
)

// spent are the times of one kind of work: by the clock, and of all processors.
type spent struct{ wall, cpu []time.Duration }

func (s *spent) on(work func()) {
	used := func() time.Duration {
		var r syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
			panic(err)
		}
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	start, before := time.Now(), used()
	work()
	s.wall, s.cpu = append(s.wall, time.Since(start)), append(s.cpu, used()-before)
}

// BenchmarkAddAll sets sketching a set of n pairs beside reading the pairs and
// no more (the sum of their fields, bound by the memory), and beside an Add of
// each on one processor. The processors' time tells what working side by side
// costs even where other programs leave no processor free.
func BenchmarkAddAll(b *testing.B) {
	pairs := randomPairs(rand.New(rand.NewPCG(1, 1)), 10_000_000)
	for _, n := range []int{1_000_000, 10_000_000} {
		for _, m := range []int{1 << 14, 1 << 17} {
			b.Run(fmt.Sprintf("n=%d/M=%d", n, m), func(b *testing.B) {
				pairs := pairs[:n]
				one := pairs[:1_000_000] // an Add takes as long however many follow
				var pass, all, adds spent
				var read uint64
				for b.Loop() {
					pass.on(func() {
						for i := range pairs {
							read += uint64(pairs[i].Index) + uint64(pairs[i].Checksum)
						}
					})
					all.on(func() {
						if err := NewSketch(Key{}, m).AddAll(sequence(pairs, nil)); err != nil {
							b.Fatal(err)
						}
					})
					adds.on(func() {
						s := NewSketch(Key{}, m)
						for _, p := range one {
							s.Add(p)
						}
					})
				}
				if read == 0 {
					b.Fatal("nothing was read")
				}
				b.ReportMetric(median(pass.wall)/float64(n), "ns/pass")
				b.ReportMetric(median(all.wall)/float64(n), "ns/pair")
				b.ReportMetric(median(all.cpu)/float64(n), "cpu-ns/pair")
				b.ReportMetric(median(adds.wall)/float64(len(one)), "ns/add")
				b.ReportMetric(median(adds.cpu)/float64(len(one)), "cpu-ns/add")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
