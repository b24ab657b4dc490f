package reconcile

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/iblt/rateless"
)

// TestHundredAtBest searches what a hundred differences of which nothing was known could
// cost if the aims were made for just this number: the first message has some cells and
// no estimator, and two or three requests for more follow, by what the cells tell. It holds
// that docs/PERFORMANCE.md tells the truth: no such aim comes to 18 bytes each.
func TestHundredAtBest(t *testing.T) {
	const differences, most, request = 100, 260, 20
	rng := seeded(t, 17)
	a, b, o := sets(rng, 1000, 0, 0, time.Hour)
	o.DryRun = true
	equal := meet(t, a, b, o)
	heads := float64(equal.WireBytesSent + equal.WireBytesReceived - equal.SketchBytes + 2*quietSlack)

	// What a decoder tells after each cell, until it is done.
	type state struct {
		all   float64
		found int
	}
	var syncs [][]state
	for range max(31, *trials/5) {
		theirs, ours := missingAll(rng, differences, most)
		var told []state
		d := rateless.NewDecoder(ours, holdsNothing)
		for n := 0; n < most && !d.Done(); n++ {
			if err := d.AddCells(theirs[n : n+1]); err != nil {
				t.Fatal(err)
			}
			told = append(told, state{d.Estimate(), d.Found()})
		}
		syncs = append(syncs, told)
	}
	costs := make([]float64, len(syncs))
	median := func(cost func([]state) float64) float64 {
		for i := range syncs {
			costs[i] = cost(syncs[i]) / differences
		}
		slices.Sort(costs)
		return costs[len(costs)/2]
	}
	known := median(func(s []state) float64 { return heads + float64(rateless.CellSize*len(s)) })

	type aims struct {
		bytes, rounds              float64 // a difference, median; round trips, mean
		first, second, third, root float64
		step                       float64
	}
	best := aims{bytes: math.Inf(1)}
	three := best // of those that take three round trips on average at the most
	for _, first := range []float64{26, 40, 64, 80, 96} {
		for _, second := range []float64{.8, .9, 1, 1.1, 1.2, 1.3} {
			for _, third := range []float64{1.1, 1.2, 1.3, 1.4} {
				for _, slack := range []float64{-.5, 0, .5, 1} {
					for _, step := range []float64{6, 12, 24} {
						all := 0
						got := median(func(s []state) float64 {
							cells, requests := first, 0
							for ; int(cells) < len(s); requests++ {
								now := s[int(cells)-1]
								aim := second * now.all
								if requests > 0 {
									left := corrected(now.all, int(cells), now.found)
									aim = third*left + slack*math.Sqrt(left)
								}
								cells = math.Ceil(max(aim, cells+step))
							}
							all += requests
							return heads + rateless.CellSize*cells + request*float64(requests)
						})
						these := aims{got, 1 + float64(all)/float64(len(syncs)), first, second, third, slack, step}
						if got < best.bytes {
							best = these
						}
						if got < three.bytes && these.rounds <= 3 {
							three = these
						}
					}
				}
			}
		}
	}
	t.Logf("%.0f bytes of heads; %.2f bytes a difference if the cells that suffice were known, by the best aims %+v, with three round trips %+v", heads, known, best, three)
	if best.bytes < 18 || best.bytes < known {
		t.Errorf("%.2f bytes a difference by the best aims, %.2f if the cells were known: 18 can be had", best.bytes, known)
	}
}
