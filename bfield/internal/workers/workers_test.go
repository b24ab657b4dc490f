package workers

import (
	"sync/atomic"
	"testing"
)

func TestOf(t *testing.T) {
	for asked, good := range map[int]bool{-1: false, 0: true, 1: true, Most: true, Most + 1: false, 1 << 40: false} {
		if n, err := Of(asked); (err == nil) != good || good && (n < 1 || n > Most || asked > 0 && n != asked) {
			t.Errorf("%d workers: %d, %v", asked, n, err)
		}
	}
}

// Each part of the work is done once.
func TestEach(t *testing.T) {
	for _, workers := range []int{1, 2, 7} {
		for _, n := range []int{0, 1, 6, 100} {
			done := make([]atomic.Int32, n)
			Each(workers, n, func(i int) { done[i].Add(1) })
			for i := range done {
				if done[i].Load() != 1 {
					t.Errorf("%d workers: part %d of %d is done %d times", workers, i, n, done[i].Load())
				}
			}
		}
	}
}
