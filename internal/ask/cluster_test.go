package ask

import (
	"sync"
	"testing"
)

// Questions are asked so many at a time, and those first for which no dial is wanted.
func TestEachSomeAtATime(t *testing.T) {
	const all = 3*atOnce + 1
	var mu sync.Mutex
	running, greatest, done := 0, 0, []int{}
	var full sync.WaitGroup
	full.Add(atOnce)
	each(all, func(i int) bool { return i >= all-atOnce }, func(i int) {
		mu.Lock()
		running++
		greatest = max(greatest, running)
		done = append(done, i)
		early := len(done) <= atOnce
		mu.Unlock()
		if early { // so many do run at once
			full.Done()
			full.Wait()
		}
		mu.Lock()
		running--
		mu.Unlock()
	})
	if greatest != atOnce || len(done) != all {
		t.Errorf("%d at a time, %v", greatest, done)
	}
	for _, i := range done[:atOnce] {
		if i < all-atOnce {
			t.Errorf("%v: the far ones came first", done)
		}
	}
}
