package testnettest_test

import (
	"testing"
	"time"

	"github.com/syncd-io/syncd/testnet/testnettest"
)

// A note is written on each side of a partition; when it is healed, both are on
// every node.
func Example() {
	_ = func(t *testing.T) { // func TestNotes(t *testing.T)
		net := testnettest.New(t, 3)
		net.Partition([]int{0}, []int{1, 2})
		if _, err := net.Namespace(0).Put(t.Context(), []byte("note/milk"), []byte("2 l")); err != nil {
			t.Fatal(err)
		}
		if _, err := net.Namespace(2).Put(t.Context(), []byte("note/bread"), []byte("rye")); err != nil {
			t.Fatal(err)
		}
		net.Heal()
		net.Restart(1)
		net.AssertConverged(time.Minute)
		for i := range net.Len() {
			if n := net.Namespace(i).Info().Records; n != 2 {
				t.Errorf("node %d has %d notes", i, n)
			}
		}
	}
}
