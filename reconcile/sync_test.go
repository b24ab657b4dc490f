package reconcile

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// diverged makes two sides that share n records, each lacking missing of the
// other's and mismatched updated on a random side. spread is how far apart
// the writes lie.
func diverged(t testing.TB, rng *rand.Rand, n, missing, mismatched int, spread time.Duration, hasher dbadapter.Hasher) (a, b *side) {
	var secret dbadapter.Secret
	for i := range secret {
		secret[i] = byte(rng.Uint32())
	}
	a, b = newSideOf(t, "a", hasher, secret), newSideOf(t, "b", hasher, secret)
	when := func() dbadapter.Version {
		v := at(time.Duration(rng.Int64N(int64(spread) + 1)))
		v.Incarnation = rng.Uint64()
		return v
	}
	var common []dbadapter.Record
	for i := range n {
		common = append(common, record(fmt.Sprintf("common/%d", i), fmt.Sprintf("value %d", i), at(-time.Hour)))
	}
	a.put(common...)
	b.put(common...)
	var onlyA, onlyB []dbadapter.Record
	for i := range missing {
		onlyA = append(onlyA, record(fmt.Sprintf("a/%d", i), "of a", when()))
		onlyB = append(onlyB, record(fmt.Sprintf("b/%d", i), "of b", when()))
	}
	for i := range mismatched {
		r := common[i]
		r.Value, r.Version = []byte(fmt.Sprintf("newer %d", i)), when()
		if rng.IntN(2) == 0 {
			onlyA = append(onlyA, r)
		} else {
			onlyB = append(onlyB, r)
		}
	}
	a.put(onlyA...)
	b.put(onlyB...)
	return a, b
}

func TestSyncFindsEachKind(t *testing.T) {
	for _, c := range []struct{ n, missing, mismatched int }{
		{0, 0, 0},
		{0, 1, 0},
		{1, 0, 1},
		{10, 0, 0},
		{10, 3, 2},
		{100, 10, 20},
		{2000, 500, 1000},
		{2000, 0, 2000},
		{100, 3000, 0},
		{20000, 9000, 9000},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			a, b := diverged(t, seeded(t, 1), c.n, c.missing, c.mismatched, time.Hour, nil)
			out := synced(t, a, b, Options{}, nil)
			wantEqual(t, a, b)
			r := out.a
			if r.MissingHere != c.missing || r.MissingThere != c.missing || r.Mismatched != c.mismatched {
				t.Errorf("found %d missing here, %d missing there, %d mismatched", r.MissingHere, r.MissingThere, r.Mismatched)
			}
			if !r.Verified || !out.b.Verified {
				t.Error("not verified")
			}
			t.Logf("%s: %d rounds, %d cells, %d sketch bytes, estimate %d; %v", r.Method, r.Rounds, r.Cells, r.SketchBytes, r.Estimate, out.log)
			again := run(t, a, b, Options{}, nil)
			if again.a.Method != wire.MethodSame || again.a.RecordBytes != 0 || !again.a.Verified {
				t.Errorf("a second sync: %+v", again.a)
			}
		})
	}
}

// A mismatch of equal large contents moves no value, whichever side is newer.
func TestEqualContentsMoveNoValue(t *testing.T) {
	large := strings.Repeat("x", 50_000)
	for _, gap := range []time.Duration{-time.Hour, -time.Second, time.Second, time.Hour} {
		t.Run(gap.String(), func(t *testing.T) {
			a, b := newSide(t, "a", nil), newSide(t, "b", nil)
			a.put(record("k", large, at(0)), record("same", "1", at(0)))
			b.put(record("k", large, at(gap)), record("same", "1", at(0)))
			out := synced(t, a, b, Options{}, nil)
			wantEqual(t, a, b)
			if out.a.Mismatched != 1 || out.a.WireBytesSent+out.a.WireBytesReceived > 4000 {
				t.Errorf("%+v %v", out.a, out.log)
			}
			want := at(max(gap, 0))
			if got := a.dump()[0].Version; got != want {
				t.Errorf("version %v, not the newer %v", got, want)
			}
		})
	}
}

// Versions that were adopted were not sent: neither side takes them for more
// than was.
func TestAdoptionBesideRecords(t *testing.T) {
	for _, gap := range []time.Duration{-time.Hour, time.Hour} {
		a, b := newSide(t, "a", nil), newSide(t, "b", nil)
		for i := range 20 {
			key, large := fmt.Sprint("k", i), strings.Repeat("x", 5000)
			a.put(record(key, large, at(0)))
			b.put(record(key, large, at(gap)))
		}
		a.put(record("a", "", at(0)))
		b.put(record("b", "", at(0)))
		out := synced(t, a, b, Options{}, nil)
		wantEqual(t, a, b)
		if out.a.RecordBytes > 5000 {
			t.Errorf("%d record bytes", out.a.RecordBytes)
		}
	}
}

// Large values that differ travel once, from the newer side.
func TestLargeMismatches(t *testing.T) {
	for _, gap := range []time.Duration{-time.Hour, -time.Second, 0, time.Second, time.Hour} {
		t.Run(gap.String(), func(t *testing.T) {
			a, b := newSide(t, "a", nil), newSide(t, "b", nil)
			a.put(record("k", strings.Repeat("a", 50_000), at(0)))
			b.put(record("k", strings.Repeat("b", 50_000), at(gap)))
			out := synced(t, a, b, Options{}, nil)
			wantEqual(t, a, b)
			if n := out.a.RecordBytes; n < 50_000 || n > 51_000 {
				t.Errorf("%d record bytes for one value of 50,000: %v", n, out.log)
			}
		})
	}
}

// Many ambiguous mismatches exceed what may travel on suspicion.
func TestManyAmbiguousMismatches(t *testing.T) {
	rng := seeded(t, 3)
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	for i := range 3000 {
		key := fmt.Sprint("k", i)
		a.put(record(key, strings.Repeat("a", 700), at(time.Duration(rng.IntN(1000))*time.Millisecond)))
		b.put(record(key, strings.Repeat("b", 700), at(time.Duration(rng.IntN(1000))*time.Millisecond)))
	}
	out := synced(t, a, b, Options{}, nil)
	wantEqual(t, a, b)
	if !slices.Contains(out.log, "BOffers") {
		t.Errorf("nothing was offered by hash: %v", out.log)
	}
}

// A sync of one direction is verified where nothing was left for the other.
func TestDirectionThatSuffices(t *testing.T) {
	for _, dir := range []wire.Direction{wire.Pull, wire.Push} {
		a, b := newSide(t, "a", nil), newSide(t, "b", nil)
		for _, s := range []*side{a, b} {
			s.put(record("common", "", at(0)), record("old", "", at(0)))
		}
		giver := b
		if dir == wire.Push {
			giver = a
		}
		giver.put(record("new", "", at(0)), record("old", "changed", at(time.Hour)))
		out := run(t, a, b, Options{Direction: dir}, nil)
		if out.errA != nil || out.errB != nil || !out.a.Verified || !out.b.Verified {
			t.Errorf("%v: %v %v, verified %v and %v", dir, out.errA, out.errB, out.a.Verified, out.b.Verified)
		}
		wantEqual(t, a, b)
	}
}

// merge is the reference: the greater record of each key wins.
func merge(a, b []dbadapter.Record) []dbadapter.Record {
	won := map[string]dbadapter.Record{}
	for _, r := range slices.Concat(a, b) {
		if held, ok := won[string(r.Key)]; !ok || r.Compare(&held) > 0 {
			won[string(r.Key)] = r
		}
	}
	var all []dbadapter.Record
	for _, key := range slices.Sorted(maps.Keys(won)) {
		all = append(all, won[key])
	}
	return all
}

func TestDryRunForecastsAndMovesNothing(t *testing.T) {
	for _, c := range []struct{ n, missing, mismatched int }{{2000, 500, 1000}, {300, 5, 0}, {300, 0, 7}} {
		a, b := diverged(t, seeded(t, 7), c.n, c.missing, c.mismatched, time.Hour, nil)
		before := [][]dbadapter.Record{a.dump(), b.dump()}
		dry := run(t, a, b, Options{DryRun: true}, nil)
		if dry.errA != nil || dry.errB != nil {
			t.Fatal(dry.errA, dry.errB)
		}
		if !reflect.DeepEqual(before, [][]dbadapter.Record{a.dump(), b.dump()}) || dry.a.RecordBytes != 0 {
			t.Fatal("a dry run moved records")
		}
		real := run(t, a, b, Options{}, nil)
		got := float64(real.a.WireBytesSent + real.a.WireBytesReceived)
		if f := float64(dry.a.ForecastBytes); f < 0.9*got || f > 1.1*got {
			t.Errorf("%v: forecast %v bytes, it took %v", c, f, got)
		}
		if dry.a.Differences() != real.a.Differences() {
			t.Errorf("%v: forecast %d differences, there were %d", c, dry.a.Differences(), real.a.Differences())
		}
	}
}

// Writes go on while the cells are read. The view must answer as of its
// moment; with checksums or cells read live, the decode does not end or the
// proof fails.
func TestWritesDuringSync(t *testing.T) {
	for seed := range uint64(20) {
		rng := seeded(t, seed)
		a, b := diverged(t, rng, 1000, 200, 300, time.Hour, nil)
		tick := 0
		out := run(t, a, b, Options{}, func(_ bool, m wire.Message) wire.Message {
			tick++
			for _, s := range []*side{a, b} {
				for n := range 3 {
					s.put(record(fmt.Sprintf("common/%d", rng.IntN(1000)), fmt.Sprint(s.name, tick, n), at(2*time.Hour+time.Duration(tick)*time.Second)))
				}
			}
			return m
		})
		if out.errA != nil || out.errB != nil {
			t.Fatal(out.errA, out.errB, out.log)
		}
		if out.a.Differences() != 700 {
			t.Errorf("%d differences as of the start, not 700", out.a.Differences())
		}
		out = synced(t, a, b, Options{}, nil)
		wantEqual(t, a, b)
	}
}
