package plan

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/reconcile"
)

// long is a plan of 7 nodes and about 2,000 events.
func long(t *testing.T, seed uint64) Plan {
	t.Helper()
	text := "nodes 7\nseed %d\nnet delay=13ms jitter=77ms loss=0.02 reorder=0.01\nevery 3.217s\nsigned\n" +
		"at 1s random writes=1500 keys=40 size=3000B syncs=100 faults=300 profile=mixed for 2m\n"
	p, err := Parse(fmt.Sprintf(text, seed))
	if err != nil {
		t.Fatal(err)
	}
	// Mixed may mean calm; these are of all kinds.
	p.Events[0].Random.Profile = Rough
	disks := p.Events[0]
	disks.At += time.Second
	disks.Random = Random{Faults: 100, Profile: Disks}
	clocks := disks
	clocks.At += time.Second
	clocks.Random = Random{Faults: 50, Profile: Clocks}
	p.Events = append(p.Events, disks, clocks)
	return p.Expand()
}

// story reports whether the events hold, in this order, one of each step.
func story(p Plan, steps ...func(Event) bool) bool {
	for _, e := range p.Events {
		if len(steps) > 0 && steps[0](e) {
			steps = steps[1:]
		}
	}
	return len(steps) == 0
}

func TestShrink(t *testing.T) {
	verb := func(v Verb) func(Event) bool { return func(e Event) bool { return e.Verb == v } }
	for _, c := range []struct {
		name   string
		events int // of the smallest plan that fails
		nodes  int
		fails  func(p Plan) bool
	}{
		{"always", 0, 1, func(Plan) bool { return true }},
		{"one crash", 1, 1, func(p Plan) bool { return story(p, verb(Crash)) }},
		{"a restored copy", 5, 2, func(p Plan) bool {
			// A node that lost a write of its own uses its version twice.
			for n := range p.Nodes {
				at := func(v Verb) func(Event) bool {
					return func(e Event) bool { return e.Node == n && (e.Verb == v || v == Put && e.Verb.Writes()) }
				}
				if story(p, at(Put), at(Copy), at(Put), at(Restore), func(e Event) bool { return e.Verb == Sync && (e.Node == n || e.Peer == n) }) {
					return true
				}
			}
			return false
		}},
		{"a partition that nothing heals", 2, 3, func(p Plan) bool {
			open := false
			for _, e := range p.Events {
				switch e.Verb {
				case Partition:
					open = len(e.Groups()[0]) >= 1 && p.Nodes >= 3
				case HealAll:
					open = false
				case Put:
					if open {
						return true
					}
				}
			}
			return false
		}},
		{"a crash in apply, of the node that deleted", 4, 2, func(p Plan) bool {
			return story(p,
				func(e Event) bool { return e.Verb == Del && e.Node == p.Nodes-1 },
				verb(Cut),
				func(e Event) bool {
					return e.Verb == CrashAt && e.Step == reconcile.StepApply && e.Node == p.Nodes-1
				},
				func(e Event) bool { return e.Verb == Start && e.Node == p.Nodes-1 })
		}},
		{"three writers of one key", 3, 3, func(p Plan) bool {
			writers := map[string]map[int]bool{}
			for _, e := range p.Events {
				if e.Verb == Put {
					if writers[e.Key] == nil {
						writers[e.Key] = map[int]bool{}
					}
					writers[e.Key][e.Node] = true
					if len(writers[e.Key]) == 3 {
						return true
					}
				}
			}
			return false
		}},
		{"many bytes", 1, 1, func(p Plan) bool {
			sum := 0
			for _, e := range p.Events {
				sum += e.Size * max(1, int(e.Amount))
			}
			return sum >= 1000
		}},
		{"ten events that belong together", 10, 1, func(p Plan) bool {
			n := 0
			for _, e := range p.Events {
				if e.Verb == Put && e.Node == 0 {
					n++
				}
			}
			return n >= 10
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const budget = 3000
			shrink := func() (Plan, int) {
				calls := 0
				return Shrink(t.Context(), long(t, 1), func(p Plan) bool {
					calls++
					if len(p.Events) < 100 { // validating long ones takes the longest
						if err := p.Validate(); err != nil {
							t.Fatalf("an unfit plan was tried: %v", err)
						}
					}
					return c.fails(p)
				}, budget), calls
			}
			if p := long(t, 1); len(p.Events) < 1900 || !c.fails(p) {
				t.Fatalf("%d events, fails %v: the test is not what it should be", len(p.Events), c.fails(p))
			}
			p, calls := shrink()
			if !c.fails(p) {
				t.Fatalf("what is left does not fail:\n%s", p.String())
			}
			if len(p.Events) > c.events || p.Nodes > c.nodes {
				t.Errorf("%d events and %d nodes are left, not %d and %d:\n%s", len(p.Events), p.Nodes, c.events, c.nodes, p.String())
			}
			if p.Net != (Net{}) && p.Net != (Net{Delay: 10 * time.Millisecond}) || p.Every != 0 || p.Signed {
				t.Errorf("the settings are left as they were:\n%s", p.String())
			}
			for _, e := range p.Events {
				if e.At%time.Second != 0 {
					t.Errorf("%s: the time is not round", e.String())
				}
			}
			if calls > 1500 {
				t.Errorf("%d calls", calls)
			}
			t.Logf("%d calls:\n%s", calls, p.String())
			if again, n := shrink(); again.String() != p.String() || n != calls {
				t.Errorf("a second time, after %d calls and not %d, it is\n%s", n, calls, again.String())
			}
		})
	}
}

// Values shrink to the needed size, batches to puts.
func TestShrinkBytes(t *testing.T) {
	p, err := Parse("nodes 1\nat 1.234s batch 0 kk 9 3000B\nat 2.5s put 0 some-key \"quite long\"\nat 3.25s put 0 other 900B\n")
	if err != nil {
		t.Fatal(err)
	}
	got := Shrink(t.Context(), p, func(p Plan) bool {
		return story(p,
			func(e Event) bool { return e.Verb.Writes() && e.Size >= 777 },
			func(e Event) bool { return e.Value != "" },
			func(e Event) bool { return e.Verb == Put && e.Key != "" })
	}, 500)
	want := "nodes 1\nseed 1\nskew 1m\n\nat 1s put 0 kk0 777B\nat 2s put 0 some-key \"a\"\nat 3s put 0 other 0B\n\nsettle 5m\nexpect converged\n"
	if got.String() != want {
		t.Errorf("it shrinks to\n%s", got.String())
	}
}

// The search keeps to its budget and its context, and the plan that it returns
// fails.
func TestShrinkBudget(t *testing.T) {
	p := long(t, 2)
	needs := func(p Plan) bool {
		return story(p, func(e Event) bool { return e.Verb == Crash }, func(e Event) bool { return e.Verb == Flip })
	}
	last := len(p.Events)
	for _, budget := range []int{1, 5, 20, 100} {
		calls := 0
		got := Shrink(t.Context(), p, func(p Plan) bool { calls++; return needs(p) }, budget)
		if calls > budget || !needs(got) || len(got.Events) > last {
			t.Errorf("with a budget of %d: %d calls, %d events, after %d with less", budget, calls, len(got.Events), last)
		}
		last = len(got.Events)
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	got := Shrink(ctx, p, func(p Plan) bool {
		if calls++; calls == 7 {
			cancel()
		}
		return needs(p)
	}, 1000)
	if calls != 7 || !needs(got) {
		t.Errorf("after the context ended: %d calls, fails %v", calls, needs(got))
	}
	if got := Shrink(t.Context(), p, func(Plan) bool { return false }, 1000); got.String() != p.String() {
		t.Error("a plan that does not fail was changed")
	}
}

// The search leaves exactly the needed events, for any set and any order of them.
func TestReduce(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		list := make([]int, rng.IntN(200))
		for i := range list {
			list[i] = i
		}
		var need []int
		for _, i := range list {
			if rng.IntN(1+rng.IntN(100)) == 0 {
				need = append(need, i)
			}
		}
		got := reduce(list, func(rest []int) bool {
			return !slices.ContainsFunc(need, func(n int) bool { return !slices.Contains(rest, n) })
		})
		if !slices.Equal(got, need) {
			t.Fatalf("seed %d: %v is left, %v is needed", seed, got, need)
		}
	}
}
