// Package paired measures two functions in turns.
package paired

import (
	"slices"
	"syscall"
	"testing"
)

// Run runs ours and the peer in turns, and reports the median of each, in nanoseconds
// a key, and of the ratios of each turn. It counts the processor's time, of which other
// programs take less than of the clock's.
func Run(b *testing.B, keys int, ours, peer func()) {
	b.Helper()
	var us, them, ratios []float64
	for b.Loop() {
		for range 5 {
			p, o := timed(peer), timed(ours)
			us, them, ratios = append(us, o/float64(keys)), append(them, p/float64(keys)), append(ratios, o/p)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(us), "ns/key-ours")
	b.ReportMetric(median(them), "ns/key-peer")
	b.ReportMetric(median(ratios), "ratio")
}

func timed(f func()) float64 {
	begin := processorTime()
	f()
	return float64(processorTime() - begin)
}

// processorTime is how long this process ran, in nanoseconds.
func processorTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
