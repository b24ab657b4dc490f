package reconcile

import (
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
