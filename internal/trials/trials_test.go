package trials

import (
	"errors"
	"slices"
	"testing"
)

func TestEachTrialRunsOnce(t *testing.T) {
	for _, n := range []int{0, 1, 1000} {
		ran := make([]int, n)
		workers := make(chan struct{}, n)
		err := Run(n, func() func(int) error {
			workers <- struct{}{}
			return func(number int) error { ran[number]++; return nil }
		})
		if err != nil || slices.ContainsFunc(ran, func(times int) bool { return times != 1 }) {
			t.Errorf("%d trials: %v %v", n, ran, err)
		}
	}
}

func TestAnErrorEndsTheRun(t *testing.T) {
	broken := errors.New("broken")
	ran := make([]bool, 1_000_000)
	err := Run(len(ran), func() func(int) error {
		return func(number int) error {
			ran[number] = true
			if number == 7 {
				return broken
			}
			return nil
		}
	})
	if err != broken || ran[len(ran)-1] {
		t.Errorf("the error is %v; the last trial has run: %v", err, ran[len(ran)-1])
	}
}
