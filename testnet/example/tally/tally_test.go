package tally_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/testnet/example/tally"
	"github.com/syncd-io/syncd/testnet/internal/failing"
	"github.com/syncd-io/syncd/testnet/testnettest"
)

// counter is what the test asks of a tally, right or wrong.
type counter interface {
	Add(ctx context.Context, what string, n uint64) error
	Total(ctx context.Context, what string) (uint64, error)
}

// atTheDoors counts at five doors through a partition, a slow clock and a kill,
// and asserts that each door ends with the count of all visitors.
func atTheDoors(t testing.TB, open func(net *testnettest.Net, i int) counter) {
	net := testnettest.New(t, 5)
	var counted uint64
	// Two people count at each of these doors, at once.
	count := func(doors ...int) {
		var people sync.WaitGroup
		for _, i := range doors {
			door := open(net, i)
			for range 2 {
				people.Go(func() {
					for range 5 {
						if err := door.Add(t.Context(), "visitors", 1); err != nil {
							t.Errorf("count at door %d: %v", i, err)
						}
					}
				})
			}
		}
		people.Wait()
		counted += 10 * uint64(len(doors))
	}
	total := func(i int) string {
		n, err := open(net, i).Total(t.Context(), "visitors")
		if err != nil {
			t.Errorf("door %d: %v", i, err)
		}
		return fmt.Sprintf("%d of %d visitors", n, counted)
	}

	count(0)
	net.AssertConverged(time.Minute)
	net.Partition([]int{0, 1}, []int{2, 3}) // and door 4 is alone
	net.Skew(2, -time.Minute)               // a tablet whose clock is slow
	count(0, 1, 2, 4)
	net.Kill(3)
	net.Heal()
	net.Start(3)
	net.Restart(0)
	count(3)
	net.AssertConverged(time.Minute)

	net.AssertSame("the count", total)
	if got, want := total(0), fmt.Sprintf("%d of %d visitors", counted, counted); got != want {
		t.Errorf("all doors agree, and are wrong: %s", got)
	}
}

func TestTally(t *testing.T) {
	atTheDoors(t, func(net *testnettest.Net, i int) counter { return tally.Open(net.Namespace(i), net.Node(i).ID()) })
}

// A count under one key converges, and is wrong: the test above says so.
func TestSharedKeyIsFound(t *testing.T) {
	r := &failing.Test{TB: t}
	r.Run(func() {
		atTheDoors(r, func(net *testnettest.Net, i int) counter { return tally.OpenSharedKey(net.Namespace(i)) })
	})
	if !r.Failed() {
		t.Fatal("a count that loses visitors passed the test")
	}
	if e := r.Errors(); len(e) != 1 || !strings.Contains(e[0], "all doors agree, and are wrong") || !strings.HasSuffix(e[0], "of 60 visitors") {
		t.Errorf("it failed for another reason:\n%s", r.Said())
	}
	t.Logf("found: %s", r.Errors())
}

func TestNames(t *testing.T) {
	net := testnettest.New(t, 1, testnettest.Memory())
	doors := tally.Open(net.Namespace(0), net.Node(0).ID())
	for _, wrong := range []string{"", "a/b"} {
		if err := doors.Add(t.Context(), wrong, 1); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
	if _, err := net.Namespace(0).Put(t.Context(), []byte("a/x"), []byte("many")); err != nil {
		t.Fatal(err)
	}
	if _, err := doors.Total(t.Context(), "a"); err == nil {
		t.Error("a record that is no count was counted")
	}
}
