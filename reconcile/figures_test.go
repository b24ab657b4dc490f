package reconcile

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// trials is raised by `make figures`; the default keeps the race detector's
// run short.
var trials = flag.Int("trials", 500, "number of syncs in TestFortyDifferences")

// common is raised to show that what both sides hold costs nothing.
var common = flag.Int("common", 1000, "number of records that both sides hold in TestWholeConversation")

// sets makes two sets under a secret of their own that share n records and
// differ as asked: missing on each side, mismatched with the newer one on a
// random side, all written within spread.
func sets(rng *rand.Rand, n, missing, mismatched int, spread time.Duration) (a, b *set, o Options) {
	var secret dbadapter.Secret
	for i := range secret {
		secret[i] = byte(rng.Uint32())
	}
	o.Keys = DeriveKeys(secret, nil)
	cells := 1 << 14
	if 2*missing+mismatched > cells/2 {
		cells = 1 << 17
	}
	a, b = newSet(o.Keys, cells), newSet(o.Keys, cells)
	common := make([]dbadapter.Record, n)
	for i := range common {
		common[i] = record(fmt.Sprintf("common/%d", i), fmt.Sprintf("value %d", i), at(-time.Hour))
	}
	a.Apply(common)
	b.Apply(common)
	when := func() dbadapter.Version { return at(time.Duration(rng.Int64N(int64(spread) + 1))) }
	for i := range missing {
		a.Apply([]dbadapter.Record{record(fmt.Sprintf("a/%d", i), "of a", when())})
		b.Apply([]dbadapter.Record{record(fmt.Sprintf("b/%d", i), "of b", when())})
	}
	for i := range mismatched {
		// Both sides have written since they last agreed.
		for _, s := range []*set{a, b} {
			r := common[i]
			r.Value, r.Version = fmt.Appendf(nil, "newer %d", rng.Uint64()), when()
			s.Apply([]dbadapter.Record{r})
		}
	}
	return a, b, o
}

// meet runs one sync between two sets.
func meet(t testing.TB, a, b *set, o Options) Report {
	t.Helper()
	o.Self, o.Remote = []byte("a"), []byte("b")
	back := o
	back.Self, back.Remote = o.Remote, o.Self
	o.Admit, back.Admit = admitting(a.Apply), admitting(b.Apply)
	sa, sb := Initiate(a, o), Respond(opening(b), back)
	defer sa.Close()
	defer sb.Close()
	var out outcome
	carry(t, sa, sb, &out, nil)
	if sa.Err() != nil || sb.Err() != nil {
		t.Fatal(sa.Err(), sb.Err())
	}
	return sa.Report()
}

// Forty differences come out of the first message: the initiator holds
// everything after one round trip in 99.5 % of syncs, after two in all. The
// bound below is the promise less five standard deviations at a rate of
// 99.9 %, so that the test fails by chance in fewer than 1 in 10^6 runs.
func TestFortyDifferences(t *testing.T) {
	for _, spread := range []time.Duration{time.Hour, time.Second} {
		t.Run("within "+spread.String(), func(t *testing.T) {
			rng := seeded(t, 40)
			byRounds := map[int]int{}
			for range *trials {
				kinds := rng.IntN(21)
				a, b, o := sets(rng, 60, kinds, 40-2*kinds, spread)
				r := meet(t, a, b, o)
				if r.Differences() != 40 {
					t.Fatalf("%d differences", r.Differences())
				}
				byRounds[r.Rounds]++
				if !maps.EqualFunc(a.buckets, b.buckets, func(x, y []dbadapter.Hashed) bool { return reflect.DeepEqual(x, y) }) {
					t.Fatal("the sets differ after a sync")
				}
			}
			n := float64(*trials)
			t.Logf("%d syncs, by round trips: %v", *trials, byRounds)
			if one := float64(byRounds[1]) / n; one < 0.995-5*math.Sqrt(0.001/n) {
				t.Errorf("%.2f %% after one round trip", 100*one)
			}
			if more := *trials - byRounds[1] - byRounds[2]; more > 0 {
				t.Errorf("%d syncs took more than two round trips", more)
			}
		})
	}
}

// Where little differs most of the time a sync of equal sets costs 600 bytes at the
// most, in both directions and however large the sets are, and the first cells show
// up to five differences in 99.7 of 100 syncs, and ten in 96: for 60 bytes a difference in half of
// the syncs, with both greetings.
func TestQuietOpenings(t *testing.T) {
	rng := seeded(t, 12)
	var equal int64 // bytes of a sync of equal sets, without its cells
	for _, c := range []struct {
		differences int
		least       float64
	}{{0, 1}, {1, 1}, {3, 0.999}, {5, 0.995}, {10, 0.95}} {
		one, syncs := 0, *trials/2
		costs := make([]float64, syncs)
		for n := range syncs {
			a, b, o := sets(rng, 20, 0, c.differences, time.Hour)
			o.FirstCells = CellsToOpen(0)
			r := meet(t, a, b, o)
			if !r.Verified || r.Differences() != c.differences {
				t.Fatalf("%+v", r)
			}
			if r.Rounds == 1 {
				one++
			}
			if size := r.WireBytesSent + r.WireBytesReceived; c.differences == 0 {
				equal = size - r.SketchBytes
				if size > 600-2*quietSlack {
					t.Errorf("%d bytes for two equal sets", size)
				}
			}
			costs[n] = float64(equal+r.SketchBytes+2*quietSlack) / float64(max(c.differences, 1))
		}
		slices.Sort(costs)
		rate, n := float64(one)/float64(syncs), float64(syncs)
		t.Logf("%d differences: %.1f %% of %.0f syncs after one round trip, %.1f bytes a difference", c.differences, 100*rate, n, costs[syncs/2])
		if rate < c.least-5*math.Sqrt(c.least*(1-c.least)/n) {
			t.Errorf("%d differences: %.1f %% after one round trip", c.differences, 100*rate)
		}
		if c.differences == 10 && costs[syncs/2] > 60 {
			t.Errorf("ten differences cost %.1f bytes each", costs[syncs/2])
		}
	}
}

// What is usual comes out of the first message in 99.5 % of syncs, as long as that is up to
// some hundred differences.
func TestUsualOpenings(t *testing.T) {
	rng := seeded(t, 13)
	for _, differences := range []int{6, 10, 40, 100} {
		one, syncs := 0, *trials/2
		for range syncs {
			a, b, o := sets(rng, 20, differences/2, differences%2, time.Hour)
			o.FirstCells, o.DryRun = CellsToOpen(differences), true
			if r := meet(t, a, b, o); r.Rounds == 1 {
				one++
			}
		}
		rate, n := float64(one)/float64(syncs), float64(syncs)
		t.Logf("%d differences, %d cells: %.1f %% of %.0f syncs after one round trip", differences, CellsToOpen(differences), 100*rate, n)
		if least := 0.995; rate < least-5*math.Sqrt(least*(1-least)/n) {
			t.Errorf("%d differences: %.1f %% after one round trip", differences, 100*rate)
		}
	}
}

// A Hello without cells is enough for two equal sets, and costs a round trip more where
// they are not.
func TestNoCells(t *testing.T) {
	rng := seeded(t, 14)
	for differences, rounds := range []int{1, 2} {
		a, b, o := sets(rng, 20, 0, differences, time.Hour)
		o.FirstCells = NoCells
		r := meet(t, a, b, o)
		if !r.Verified || r.Differences() != differences || r.Rounds != rounds {
			t.Errorf("%+v", r)
		}
		if size := r.WireBytesSent + r.WireBytesReceived; differences == 0 && size > 300 {
			t.Errorf("%d bytes for two equal sets", size)
		}
	}
}

// Much that is written after a quiet time takes one round trip more than it would
// have else: the first further cells bring the estimator.
func TestLoudAfterQuiet(t *testing.T) {
	for seed := range uint64(4) {
		var rounds [2]int
		for n, first := range []int{FirstCells, QuietCells} {
			a, b, o := sets(rand.New(rand.NewPCG(seed, 2)), 100, 5000, 0, time.Hour)
			o.DryRun, o.FirstCells = true, first
			r := meet(t, a, b, o)
			if r.Differences() != 10_000 || r.Estimate < 5000 || r.Estimate > 20_000 {
				t.Errorf("%+v", r)
			}
			rounds[n] = r.Rounds
		}
		if rounds[1] > rounds[0]+2 {
			t.Errorf("seed %d: %d round trips, and %d after a quiet time", seed, rounds[0], rounds[1])
		}
	}
}

// quietSlack is by how much the number of records of a large set is longer on the
// wire than that of the sets here.
const quietSlack = 8

// A hundred thousand differences are known only roughly in advance, and still take
// few cells more than they must, and three round trips.
func TestManyDifferences(t *testing.T) {
	const seeds, differences = 4, 100_000
	cells := 0.0
	for seed := range uint64(seeds) {
		a, b, o := sets(rand.New(rand.NewPCG(seed, 1)), 0, differences/2, 0, time.Hour)
		o.DryRun = true
		r := meet(t, a, b, o)
		if r.Differences() != differences || r.Rounds > 3 {
			t.Fatalf("%+v", r)
		}
		cells += float64(r.Cells) / differences / seeds
	}
	t.Logf("%.3f cells a difference", cells)
	if cells > 1.13 {
		t.Errorf("%.3f cells a difference; the decoder needs 1.09", cells)
	}
}

// The cost of finding 2,000 differences among 10,000 records, estimators and
// overshoot included, over 31 seeds.
func TestSketchBytes(t *testing.T) {
	cost := func(missing, mismatched int) (bytes, cells, rounds float64) {
		const seeds = 31
		for seed := range uint64(seeds) {
			a, b, o := sets(rand.New(rand.NewPCG(seed, 0)), 10_000-missing, missing, mismatched, time.Hour)
			o.DryRun = true
			r := meet(t, a, b, o)
			if r.MissingHere != missing || r.MissingThere != missing || r.Mismatched != mismatched {
				t.Fatalf("seed %d: %+v", seed, r)
			}
			bytes += float64(r.SketchBytes) / float64(r.Differences()) / seeds
			cells += float64(r.Cells) / seeds
			rounds += float64(r.Rounds) / seeds
		}
		return bytes, cells, rounds
	}
	mixed, _, rounds := cost(500, 1000)
	_, missing, _ := cost(1000, 0)
	_, mismatched, _ := cost(0, 2000)
	t.Logf("%.2f sketch bytes a difference in %.2f rounds; 2,000 missing take %.0f cells, 2,000 mismatched %.0f (%.3f×)",
		mixed, rounds, missing, mismatched, mismatched/missing)
	if mixed > 14 {
		t.Errorf("%.2f sketch bytes a difference; at most 14 are promised", mixed)
	}
	if mismatched > 1.05*missing {
		t.Errorf("2,000 mismatched take %.0f cells, 2,000 missing %.0f", mismatched, missing)
	}
}

// What finding differences costs all told where nothing was known of them: the heads of
// Hello and Welcome, estimators, cells and the requests for them. Medians of 31 seeds.
func TestWholeConversation(t *testing.T) {
	const seeds = 31
	a, b, o := sets(seeded(t, 15), *common, 0, 0, time.Hour)
	o.DryRun = true
	equal := meet(t, a, b, o)
	heads := equal.WireBytesSent + equal.WireBytesReceived - equal.SketchBytes + 2*quietSlack
	for _, c := range []struct {
		differences int
		most        float64
	}{{100, 23}, {1000, 14}, {10_000, 13}} {
		costs, rounds, over := make([]float64, seeds), make([]int, seeds), 0
		for seed := range costs {
			only := [2][]dbadapter.Record{}
			for i, s := range []*set{a, b} {
				for n := range c.differences / 2 {
					only[i] = append(only[i], record(fmt.Sprintf("%d of %d in %d/%d", n, i, seed, c.differences), "only here", at(0)))
				}
				s.Apply(only[i])
			}
			r := meet(t, a, b, o)
			for i, s := range []*set{a, b} {
				for n := range only[i] {
					s.forget(&only[i][n])
				}
			}
			if r.Differences() != c.differences {
				t.Fatalf("%+v", r)
			}
			rounds[seed] = r.Rounds
			costs[seed] = float64(heads+r.SketchBytes+int64(20*(r.Rounds-1))) / float64(c.differences)
			if r.Rounds > 3 {
				over++
			}
		}
		slices.Sort(costs)
		slices.Sort(rounds)
		t.Logf("%d differences: %.2f bytes each (%.2f to %.2f), %d round trips, more than three in %d of %d", c.differences, costs[seeds/2], costs[0], costs[seeds-1], rounds[seeds/2], over, seeds)
		if costs[seeds/2] > c.most || rounds[seeds/2] > 3 {
			t.Errorf("%d differences: %.2f bytes each in %d round trips", c.differences, costs[seeds/2], rounds[seeds/2])
		}
	}
}
