package quorum

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

// The median and the 95th percentile are those of the last 64 requests.
func TestTimesAgainstTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var times Times
	var all []time.Duration
	for i := range 300 {
		d := time.Duration(r.IntN(1000)) * time.Millisecond
		times.Took("a", d, 0)
		all = append(all, d)
		last := slices.Sorted(slices.Values(all[max(0, len(all)-window):]))
		count := func(d time.Duration) (n int) {
			for _, o := range last {
				if o <= d {
					n++
				}
			}
			return n
		}
		least := func(share float64) time.Duration {
			i := slices.IndexFunc(last, func(d time.Duration) bool { return float64(count(d)) >= share*float64(len(last)) })
			return last[i]
		}
		late := hedgeUnknown
		if i+1 >= enough {
			late = max(hedgeLeast, least(.95))
		}
		if got := times.Late("a"); got != late {
			t.Fatalf("after %d: late after %v, want %v", i+1, got, late)
		}
		if got, want := times.Estimate("a", 0), least(.5); got != want {
			t.Fatalf("after %d: %v, want %v", i+1, got, want)
		}
	}
	if got, want := times.Estimate("a", 2*halfLife), times.Estimate("a", 0)/4; got != want {
		t.Errorf("after two half-lives %v, want %v", got, want)
	}
}

// The order: without failures, connected, nearest.
func TestOrder(t *testing.T) {
	var times Times
	times.Took("near", time.Millisecond, 0)
	times.Took("far", time.Second, 0)
	times.Took("failed", time.Millisecond, 0)
	times.Failed("failed", 0)
	times.Took("apart", time.Millisecond, 0)
	order := func(now time.Duration) []ID {
		ids := []ID{"failed", "apart", "far", "near", "new"}
		times.Sort(ids, func(id ID) bool { return id != "apart" }, now)
		return ids
	}
	if got, want := order(0), []ID{"new", "near", "far", "apart", "failed"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := order(restFirst), []ID{"new", "failed", "near", "far", "apart"}; !slices.Equal(got, want) {
		t.Errorf("rested: %q, want %q", got, want)
	}
	times.Failed("failed", restFirst)
	if times.rests("failed", 2*restFirst) != true || times.rests("failed", 4*restFirst) {
		t.Error("a second failure rests twice as long")
	}
	for range 100 {
		times.Failed("failed", 0)
	}
	if times.rests("failed", restMost) {
		t.Error("it rests for too long")
	}
}

// What is remembered is bounded.
func TestTimesAreBounded(t *testing.T) {
	var times Times
	for i := range MaxPeers + 10 {
		times.Took(ID(strconv.Itoa(i)), time.Second, time.Duration(i))
	}
	if len(times.of) != MaxPeers || times.Estimate(ID("9"), 0) != 0 || times.Estimate(ID("10"), 10) != time.Second {
		t.Errorf("%d peers are remembered", len(times.of))
	}
}
