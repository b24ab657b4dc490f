package reconcile

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/storetest"
	"github.com/syncd-io/syncd/reconcile/wire"
)

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
