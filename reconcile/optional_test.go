package reconcile

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// Of two records with the same large content, the head of the winner comes over
// with all that it says, and no value travels: as an offer that is adopted, as a
// stub against an offer, as a stub against a bid. Of one version, the later expiry
// wins, and then what is replaced.
func TestHeadsCarryOptionalFields(t *testing.T) {
	large := strings.Repeat("x", 50_000)
	day := func(n int) dbadapter.Timestamp {
		return dbadapter.TimestampAt(time.Date(2027, 1, n, 0, 0, 0, 0, time.UTC))
	}
	one, two := []dbadapter.Replaced{{Writer: 1, Clock: 5}}, []dbadapter.Replaced{{Writer: 1, Clock: 5}, {Writer: 2, Clock: 9}}
	for _, gap := range []time.Duration{0, time.Second, time.Hour} {
		for n, change := range []func(win, lose *dbadapter.Record){
			func(win, lose *dbadapter.Record) { win.Expires, lose.Expires = day(2), day(1) },
			func(win, lose *dbadapter.Record) { win.Expires = day(1) },
			func(win, lose *dbadapter.Record) { win.Replaces, lose.Replaces = two, one },
			func(win, lose *dbadapter.Record) { win.Replaces = one },
			func(win, lose *dbadapter.Record) { win.Expires, win.Replaces = day(1), two },
		} {
			win, lose := record("k", large, at(gap)), record("k", large, at(0))
			change(&win, &lose)
			for _, places := range [][2]dbadapter.Record{{win, lose}, {lose, win}} {
				t.Run(fmt.Sprint(gap, " ", n, " ", places[0].Compare(&places[1])), func(t *testing.T) {
					a, b := newSide(t, "a", nil), newSide(t, "b", nil)
					a.put(places[0], record("same", "1", at(0)))
					b.put(places[1], record("same", "1", at(0)))
					out := run(t, a, b, Options{}, nil)
					if out.errA != nil || out.errB != nil || !out.a.Verified || !out.b.Verified {
						t.Fatal(out.errA, out.errB, out.log)
					}
					wantEqual(t, a, b)
					if got := a.dump()[0]; !reflect.DeepEqual(got, win) {
						t.Errorf("expires %v, replaces %v; not %v, %v", got.Expires, got.Replaces, win.Expires, win.Replaces)
					}
					if out.a.WireBytesSent+out.a.WireBytesReceived > 4000 {
						t.Errorf("%+v %v", out.a, out.log)
					}
				})
			}
		}
	}
}
