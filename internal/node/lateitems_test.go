package node

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
)

// The version of an item that is written as of now says its date; that of any other record its clock.
func TestDateOfALateItem(t *testing.T) {
	w := newMovers(t, 1, 1)
	ns := w.all[0].ns
	draw := rand.New(rand.NewPCG(5, 6))
	now := dbadapter.TimestampAt(noon)
	for i := range 100_000 {
		key := fmt.Appendf(nil, "key %d", i)
		date := hlc.Epoch.Add(time.Duration(draw.Int64N(int64(noon.Sub(hlc.Epoch))))).Truncate(time.Millisecond)
		v := dbadapter.Version{Clock: now + dbadapter.Timestamp(draw.Uint32()), Writer: ns.self}
		v.Incarnation = ns.lateIncarnation(key, v.Clock, date)
		if got := ns.DateOf(key, v); got != dbadapter.TimestampAt(date) {
			t.Fatalf("%s of %q is dated %v", date, key, got)
		}
		if !ns.LateBefore(key, v, date.Add(time.Millisecond)) || ns.LateBefore(key, v, date) {
			t.Fatalf("%s of %q is before the wrong dates", date, key)
		}
		for what, other := range map[string]dbadapter.Version{
			"another clock":       {Clock: v.Clock + 1, Writer: v.Writer, Incarnation: v.Incarnation},
			"another incarnation": {Clock: v.Clock, Writer: v.Writer, Incarnation: draw.Uint64()},
			"no writer":           {Clock: v.Clock},
		} {
			if got := ns.DateOf(key, other); got != other.Clock {
				t.Fatalf("%s: %v is dated %v", what, other, got)
			}
		}
		if other := append([]byte("of "), key...); ns.DateOf(other, v) != v.Clock {
			t.Fatalf("%q has the date of %q", other, key)
		}
	}
}
