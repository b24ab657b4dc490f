package clocks

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/roster"
)

// An offset is within its error of the truth, however the delay is divided between
// the two ways and however long the peer takes; it is only called off where the
// clocks are.
func TestOffsetsAreWithinTheirError(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		ahead := time.Duration(rng.Int64N(int64(6*time.Second))) - 3*time.Second
		there, back := time.Duration(rng.Int64N(int64(4*time.Second))), time.Duration(rng.Int64N(int64(50*time.Millisecond)))
		if rng.IntN(2) == 0 {
			there, back = back, there
		}
		sent := epoch.Add(time.Duration(rng.Int64N(int64(time.Second))))
		theirs := uint64(sent.Add(there + ahead).UnixMilli())
		var o Offsets
		o.Measure("x", theirs, sent, sent.Add(there+back))
		m := o.of["x"]
		if (m.By-ahead).Abs() > m.Error || m.Error > (there+back)/2+time.Millisecond {
			t.Fatalf("a clock ahead by %s, over %s and %s: by %s ± %s", ahead, there, back, m.By, m.Error)
		}
		if m.Off() && ahead.Abs() <= ClockOff {
			t.Fatalf("a clock ahead by %s, over %s and %s, is called off", ahead, there, back)
		}
		if ahead.Abs() > ClockOff+there+back+time.Millisecond && !m.Off() {
			t.Fatalf("a clock ahead by %s, over %s and %s, is not called off", ahead, there, back)
		}
	}
}

// A node's own offset is that against most of its peers, and as certain as they are
// known.
func TestOwnOffset(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		peers []time.Duration // by which each is ahead
		trip  time.Duration
		want  time.Duration
		off   bool
	}{
		"right, as all":             {[]time.Duration{0, 10 * ms, -10 * ms}, 20 * ms, 0, false},
		"ahead of all":              {[]time.Duration{-3000 * ms, -3010 * ms, -2990 * ms}, 20 * ms, 3000 * ms, true},
		"behind all":                {[]time.Duration{3000 * ms, 3010 * ms}, 20 * ms, -3005 * ms, true},
		"one peer is wrong":         {[]time.Duration{0, 0, time.Hour}, 20 * ms, 0, false},
		"ahead of all but one":      {[]time.Duration{-5000 * ms, -5000 * ms, 0}, 20 * ms, 5000 * ms, true},
		"far away":                  {[]time.Duration{-3000 * ms, -3000 * ms}, 5000 * ms, 3000 * ms, false},
		"two, of which one is away": {[]time.Duration{0, 1500 * ms}, 20 * ms, -750 * ms, false},
		"one peer":                  {[]time.Duration{2000 * ms}, 20 * ms, -2000 * ms, true},
	} {
		var o Offsets
		for n, ahead := range c.peers {
			o.Measure(roster.ID(rune('a'+n)), uint64(epoch.Add(ahead).UnixMilli()), epoch.Add(-c.trip/2), epoch.Add(c.trip/2))
		}
		own, peers := o.Own(epoch)
		if peers != len(c.peers) || (own.By-c.want).Abs() > 2*ms || own.Off() != c.off {
			t.Errorf("%s: %+v of %d, off %v", name, own, peers, own.Off())
		}
	}
}

// The latest of each peer counts, for as long as it says something; what says
// nothing is not noted, and a vast number does no harm.
func TestOffsetsAreKept(t *testing.T) {
	var o Offsets
	if _, peers := o.Own(epoch); peers > 0 {
		t.Error("an offset without peers")
	}
	now := epoch
	at := func(d time.Duration) uint64 { return uint64(now.Add(d).UnixMilli()) }
	o.Measure("a", at(time.Hour), now, now)
	o.Measure("a", at(time.Minute), now, now)
	o.Measure("b", 0, now, now)
	o.Measure("c", at(0), now, now.Add(-time.Second))
	o.Measure("d", math.MaxUint64, now, now)
	o.Measure("e", 1, now, now)
	o.Measure("g", at(0), time.Time{}, now) // it began the sync
	o.Measure("f", at(0), now.Add(-1<<62), now)
	of := func(peer roster.ID) (Offset, bool) {
		for _, m := range o.List(now) {
			if m.Peer == peer {
				return m, true
			}
		}
		return Offset{}, false
	}
	if o, ok := of("a"); !ok || (o.By-time.Minute).Abs() > o.Error || !o.Off() {
		t.Errorf("%+v, %v", o, ok)
	}
	for id, want := range map[roster.ID]bool{"b": false, "c": false, "g": false, "d": true, "e": true} {
		if o, ok := of(id); ok != want || ok && !o.Off() {
			t.Errorf("%s: %+v, %v", id, o, ok)
		}
	}
	if o, _ := of("d"); o.By < 0 {
		t.Errorf("%+v", o)
	}
	if o, ok := of("f"); !ok || o.Off() {
		t.Errorf("%+v", o)
	}
	if list := o.List(now.Add(OffsetLife + time.Second)); len(list) > 0 {
		t.Errorf("%+v", list)
	}
	var many Offsets
	for n := range roster.MaxMembers + 10 {
		many.Measure(roster.ID(rune(n+1)), 1, now, now.Add(time.Duration(n)*time.Second))
	}
	if len(many.of) != roster.MaxMembers {
		t.Errorf("%d peers are remembered", len(many.of))
	}
}
