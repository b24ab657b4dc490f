package reconcile

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/storetest"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Any two sets, in any direction, by any method, in any scope: a side that receives
// ends with the merge of both, one that does not is unchanged, and a side says
// verified only if both hold the same in the end.
func TestRandomSyncs(t *testing.T) {
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var h dbadapter.Hasher
		if rng.IntN(4) > 0 {
			h = storetest.Weak(dbadapter.NewHasher(testSecret), 1+rng.IntN(8))
		}
		a, b := newSide(t, "a", h), newSide(t, "b", h)
		for range rng.IntN(60) {
			[]*side{a, b}[rng.IntN(2)].put(randomRecord(rng))
		}
		o := Options{Direction: wire.Direction(rng.IntN(3)), Method: wire.Method(rng.IntN(3))}
		in := func(all []dbadapter.Record) []dbadapter.Record { return all }
		if rng.IntN(3) == 0 {
			a.prefix, b.prefix = []byte("p/"), []byte("p/")
			in = func(all []dbadapter.Record) (in []dbadapter.Record) {
				for _, r := range all {
					if strings.HasPrefix(string(r.Key), "p/") {
						in = append(in, r)
					}
				}
				return in
			}
		}
		a0, b0 := a.dump(), b.dump()
		want := merge(in(a0), in(b0))
		out := run(t, a, b, o, nil)
		fail := func(format string, args ...any) {
			t.Helper()
			t.Errorf("seed %d, %+v, prefix %q: "+format+"; %v", append([]any{seed, o.Direction, a.prefix}, append(args, out.log)...)...)
		}
		if out.errA != nil || out.errB != nil {
			fail("%v, %v", out.errA, out.errB)
			continue
		}
		a1, b1 := a.dump(), b.dump()
		switch {
		case o.Direction == wire.Push && !reflect.DeepEqual(a1, a0), o.Direction == wire.Pull && !reflect.DeepEqual(b1, b0):
			fail("the giving side has changed")
		case o.Direction != wire.Push && !same(in(a1), want), o.Direction != wire.Pull && !same(in(b1), want):
			fail("the getting side does not hold the merge")
		case !same(outside(a1, in), outside(a0, in)), !same(outside(b1, in), outside(b0, in)):
			fail("records outside the scope have changed")
		}
		equal := same(in(a1), in(b1))
		if (out.a.Verified || out.b.Verified) && !equal {
			fail("verified %v and %v, but the sets differ", out.a.Verified, out.b.Verified)
		}
		if o.Direction == wire.Both && (!out.a.Verified || !out.b.Verified) {
			fail("a sync both ways is not verified")
		}
	}
}

func randomRecord(rng *rand.Rand) dbadapter.Record {
	value := fmt.Sprint("v", rng.IntN(3))
	if rng.IntN(2) == 0 {
		value = strings.Repeat(value, 1000) // offered by hash
	}
	times := []int{300, 2}[rng.IntN(2)]
	r := record(fmt.Sprintf("%c/%d", 'p'+rune(rng.IntN(2)), rng.IntN(12)), value, at(time.Duration(rng.IntN(times))*time.Second))
	if rng.IntN(3) == 0 {
		r.Version.Writer, r.Version.Incarnation = 0, 0 // a dated import: versions tie
	}
	switch rng.IntN(6) {
	case 0:
		r.Deleted, r.Value = true, nil
	case 1, 2:
		r.Expires = dbadapter.TimestampAt(time.Date(2027, 1, 1+rng.IntN(2), 0, 0, 0, 0, time.UTC))
	}
	if r.Version.Writer != 0 && rng.IntN(3) == 0 {
		r.Replaces = []dbadapter.Replaced{{Writer: dbadapter.WriterID(1 + rng.IntN(2)), Clock: 7}}
	}
	return r
}

func same(a, b []dbadapter.Record) bool {
	return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b))
}

// outside are the records that a scope leaves out.
func outside(all []dbadapter.Record, in func([]dbadapter.Record) []dbadapter.Record) (out []dbadapter.Record) {
	inside := map[string]bool{}
	for _, r := range in(all) {
		inside[string(r.Key)] = true
	}
	for _, r := range all {
		if !inside[string(r.Key)] {
			out = append(out, r)
		}
	}
	return out
}

// Whatever two sides hold, and whichever writer each of them declines: after some
// syncs in any direction each key's winner is at both sides, but where it is
// declined; no sync is called verified whose sets differ; and once that is so no
// large value travels again.
func TestRandomDeclines(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 7))
		h := dbadapter.NewHasher(testSecret)
		// A head does not tell which of two contents of one version wins, and a
		// bucket of several records travels whole: then large values may travel
		// in vain.
		vain := rng.IntN(3) == 0
		if vain {
			h = storetest.Weak(h, 1+rng.IntN(6))
		}
		a, b := newSide(t, "a", h), newSide(t, "b", h)
		declines := map[*side]dbadapter.WriterID{}
		if rng.IntN(2) == 0 {
			declines[a] = 3
			a.decline(3)
		}
		if rng.IntN(2) == 0 {
			declines[b] = 2
			b.decline(2)
		}
		keys := 1 + rng.IntN(40)
		drawn := map[string]dbadapter.Record{} // by key and version
		draw := func() dbadapter.Record {
			r := record(fmt.Sprintf("%c/%d", 'p'+rune(rng.IntN(2)), rng.IntN(keys)), "", by(dbadapter.WriterID(1+rng.IntN(3)), time.Duration(rng.IntN(4))*40*time.Second))
			r.Version.Incarnation = uint64(rng.IntN(2))
			switch rng.IntN(5) {
			case 0:
				r.Deleted, r.Value = true, nil
			case 1, 2:
				r.Value = bytes.Repeat([]byte{byte(rng.IntN(3))}, 2000)
			default:
				r.Value = []byte{byte(rng.IntN(3))}
			}
			name := string(r.Key) + r.Version.String()
			if o, twice := drawn[name]; twice && !r.SameContent(&o) {
				vain = true
			}
			drawn[name] = r
			return r
		}
		for range rng.IntN(60) {
			r := draw()
			for _, s := range [][]*side{{a}, {b}, {a, b}}[rng.IntN(3)] {
				s.put(r)
			}
		}
		large := 0 // values over 1 KiB that travelled in the last sync
		sync := func(o Options) outcome {
			x, y := a, b
			if rng.IntN(2) == 0 {
				x, y = b, a
			}
			large = 0
			out := run(t, x, y, o, func(_ bool, m wire.Message) wire.Message {
				if r, ok := m.(*wire.Records); ok {
					for _, s := range r.Records {
						if len(s.Record.Value) > offerAbove {
							large++
						}
					}
				}
				return m
			})
			if out.errA != nil || out.errB != nil {
				t.Fatalf("seed %d: %v, %v; %v", seed, out.errA, out.errB, out.log)
			}
			return out
		}
		equal := func() bool {
			da, na := a.state()
			db, nb := b.state()
			return da == db && na == nb
		}
		for range rng.IntN(4) {
			if rng.IntN(3) == 0 {
				a.prefix, b.prefix = []byte("p/"), []byte("p/")
			}
			sync(Options{Direction: wire.Direction(rng.IntN(3)), Method: wire.Method(rng.IntN(3)), DryRun: rng.IntN(5) == 0})
			a.prefix, b.prefix = nil, nil
			if rng.IntN(2) == 0 {
				a.put(draw())
			}
		}
		var last outcome
		for range 6 {
			last = sync(Options{})
			if (last.a.Verified || last.b.Verified) && !equal() {
				t.Fatalf("seed %d: verified, and not equal", seed)
			}
			if len(declines) == 0 && !equal() {
				t.Fatalf("seed %d: not equal after a sync", seed)
			}
		}
		if applied := last.a.Applied + last.b.Applied; applied > 0 || large > 0 && !vain {
			t.Errorf("seed %d: the sixth sync still applies %d records and moves %d large ones; %v", seed, applied, large, last.log)
		}
		for _, pair := range [][2]*side{{a, b}, {b, a}} {
			held := map[string]dbadapter.Record{}
			for _, r := range pair[1].dump() {
				held[string(r.Key)] = r
			}
			for _, r := range pair[0].dump() {
				if o, ok := held[string(r.Key)]; (!ok || r.Compare(&o) > 0) && r.Version.Writer != declines[pair[1]] {
					t.Errorf("seed %d: %s does not get %q of writer %d", seed, pair[1].name, r.Key, r.Version.Writer)
				}
			}
		}
	}
}
