package clocks

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

const testSkew = 5 * time.Minute

// greeted is one greeting of an incarnation, by a clock that is seconds past the
// start.
type greeted struct {
	incarnation uint64
	tau         int // seconds
}

func (g greeted) greeting() *wire.Greeting {
	return &wire.Greeting{Incarnation: g.incarnation, Tau: dbadapter.TimestampAt(epoch.Add(time.Duration(g.tau) * time.Second))}
}

// epoch is when the greetings of these tests begin.
var epoch = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// Two nodes of one identity are told apart from one that was restarted, whose old
// sessions may be late.
func TestTwinsAreFoundAndOnlyThey(t *testing.T) {
	for name, c := range map[string]struct {
		greetings []greeted
		at        int // the greeting that shows it, from 1; 0: there is no twin
	}{
		"one node":                               {[]greeted{{1, 1}, {1, 2}, {1, 2}, {1, 3}}, 0},
		"restarts":                               {[]greeted{{1, 1}, {2, 2}, {3, 3}, {3, 4}}, 0},
		"a late session of the old one":          {[]greeted{{1, 1}, {2, 5}, {1, 3}, {2, 6}, {1, 2}}, 0},
		"the new one's first session comes late": {[]greeted{{1, 1}, {2, 6}, {1, 4}, {2, 5}, {2, 7}}, 0},
		"only late ones":                         {[]greeted{{2, 9}, {1, 4}, {2, 8}, {1, 5}, {2, 7}, {1, 6}}, 0},
		"by turns":                               {[]greeted{{1, 1}, {2, 2}, {1, 3}}, 3},
		"a rare one":                             {[]greeted{{1, 1}, {1, 2}, {1, 3}, {2, 4}, {1, 5}}, 5},
		"a clock that is behind":                 {[]greeted{{1, 100}, {2, 50}, {1, 101}, {2, 60}, {1, 102}, {2, 110}}, 6},
		"one after a restart":                    {[]greeted{{1, 1}, {2, 2}, {3, 3}, {3, 4}, {2, 5}}, 5},
		"a clock that is ahead, within the skew": {[]greeted{{1, 1}, {2, 200}, {1, 2}, {2, 201}, {1, 203}}, 5},
		"joined again, its readings forgotten":   {[]greeted{{1, 1}, {1, 200}, {2, 150}, {2, 151}, {2, 201}, {2, 300}}, 0},
		"a late one from before a restamp":       {[]greeted{{1, 1}, {2, 2}, {1, 3600}, {2, 3}}, 0},
		"restamped, after an hour ahead":         {[]greeted{{1, 1}, {1, 3600}, {1, 3601}, {2, 2}, {2, 3}, {2, 4000}}, 0},
		"nothing promised":                       {[]greeted{{1, -1}, {2, -1}, {1, -1}}, 0},
	} {
		var w Twins
		found := 0
		for n, g := range c.greetings {
			now := epoch.Add(time.Duration(n) * time.Second)
			greeting := g.greeting()
			if g.tau < 0 {
				greeting.Tau = 0
			}
			w.note("x", greeting, now, testSkew)
			if _, ok := w.Of("x", now); ok && found == 0 {
				found = n + 1
			}
		}
		if found != c.at {
			t.Errorf("%s: found at greeting %d, not %d", name, found, c.at)
		}
		if _, ok := w.Of("y", epoch); ok {
			t.Errorf("%s: another peer has a twin", name)
		}
	}
}

// However the greetings of one node are delayed and reordered over its restarts, no
// twin is seen. Of two nodes that run at once one is.
func TestTwinsUnderDelay(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		var one, two []greeted
		for n, inc := 0, uint64(1); n < 200; n++ {
			if rng.IntN(20) == 0 {
				inc++
			}
			one = append(one, greeted{inc, n})
			two = append(two, greeted{inc + 1000*uint64(rng.IntN(2)), n})
		}
		delayed := func(all []greeted, by int) []greeted {
			for n := range all {
				m := max(0, n-rng.IntN(by))
				all[n], all[m] = all[m], all[n]
			}
			return all
		}
		if twin := meet(delayed(one, 1+rng.IntN(100))); twin >= 0 {
			t.Fatalf("one node has a twin after %d greetings", twin+1)
		}
		if meet(delayed(two, 3)) < 0 {
			t.Fatal("of two nodes one is seen")
		}
	}
}

// meet is the number of the greeting that shows a twin, or -1.
func meet(greetings []greeted) int {
	var w Twins
	for n, g := range greetings {
		w.note("x", g.greeting(), epoch, testSkew)
		if len(w.of["x"].runs) > maxRuns {
			panic("more runs than are allowed")
		}
		if _, ok := w.Of("x", epoch); ok {
			return n
		}
	}
	return -1
}

// Neither of two nodes is synced with until one has been silent for a while.
func TestTwinsAreRefused(t *testing.T) {
	var w Twins
	now := epoch
	greet := func(incarnation uint64) error {
		now = now.Add(time.Second)
		return w.Greeted("x", &wire.Greeting{Incarnation: incarnation, Tau: dbadapter.TimestampAt(now)}, now, testSkew)
	}
	for n, incarnation := range []uint64{1, 2, 1, 2} {
		if err := greet(incarnation); errors.Is(err, reconcile.ErrTwin) != (n >= 2) {
			t.Errorf("greeting %d: %v", n+1, err)
		}
	}
	if list := w.List(now); len(list) != 1 || list[0].Peer != "x" || list[0].Incarnations != [2]uint64{2, 1} {
		t.Errorf("%+v", list)
	}
	for range int(TwinLife / time.Second) {
		if err := greet(2); !errors.Is(err, reconcile.ErrTwin) {
			t.Fatalf("soon after both: %v", err)
		}
	}
	if err := greet(2); err != nil || len(w.List(now)) > 0 {
		t.Errorf("long after the first: %v, %+v", err, w.List(now))
	}
}

// A node remembers which peer refused it, and says what to do. Other errors change nothing.
func TestCopied(t *testing.T) {
	var c Copied
	other := errors.New("other")
	if err := c.Ended("x", epoch, other); err != other {
		t.Error(err)
	}
	if c.By(epoch) != nil {
		t.Error("nobody has said so")
	}
	if err := c.Ended("x", epoch, reconcile.ErrTwin); !errors.Is(err, reconcile.ErrTwin) || !strings.Contains(err.Error(), "syncd init --new-identity") {
		t.Error(err)
	}
	if by := c.By(epoch.Add(TwinLife)); by == nil || by.By != "x" || !by.At.Equal(epoch) {
		t.Errorf("it was %+v", by)
	}
	if c.By(epoch.Add(TwinLife+1)) != nil {
		t.Error("it is not forgotten")
	}
}

// A twin is told of with both incarnations and when each was heard; it is forgotten
// a while after one of the two has stopped, and found again when that comes back.
func TestTwinsAreForgotten(t *testing.T) {
	var w Twins
	now := epoch
	hear := func(g greeted) bool {
		now = epoch.Add(time.Duration(g.tau) * time.Second)
		w.note("x", g.greeting(), now, time.Second)
		_, ok := w.Of("x", now)
		return ok
	}
	hear(greeted{1, 1})
	hear(greeted{2, 2})
	hear(greeted{1, 3})
	twin, ok := w.Of("x", now)
	if want := (Twin{"x", [2]uint64{1, 2}, [2]time.Time{epoch.Add(3 * time.Second), epoch.Add(2 * time.Second)}}); !ok || twin != want {
		t.Errorf("%+v", twin)
	}
	life := int(TwinLife / time.Second)
	for tau := 4; tau <= life+10; tau++ {
		if ok := hear(greeted{1, tau}); ok != (tau <= 3+life) {
			t.Fatalf("%d seconds after both: %v", tau-3, ok)
		}
	}
	if !hear(greeted{2, life + 20}) {
		t.Error("not found again")
	}
}

// The memory of peers, and of runs, is bounded.
func TestTwinsAreBounded(t *testing.T) {
	var w Twins
	for n := range roster.MaxMembers + 100 {
		w.note(roster.ID(rune(n+1)), greeted{1, n}.greeting(), epoch.Add(time.Duration(n)*time.Second), testSkew)
	}
	if len(w.of) != roster.MaxMembers || w.of[roster.ID(rune(1))] != nil {
		t.Errorf("%d peers are remembered", len(w.of))
	}
	for n := range 100 {
		w.note("x", greeted{uint64(n % 3), n}.greeting(), epoch, testSkew)
	}
	if n := len(w.of["x"].runs); n > maxRuns {
		t.Errorf("%d runs", n)
	}
}
