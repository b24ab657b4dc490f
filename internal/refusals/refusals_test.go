package refusals

import (
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// noon is when these tests begin.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// When a declined record is offered again: for most reasons after a while; one
// that was declined for its time not before a right clock accepts it.
func TestDeclinedAgain(t *testing.T) {
	const skew = 5 * time.Minute
	at := func(d time.Duration) dbadapter.Version {
		return dbadapter.Version{Clock: dbadapter.TimestampAt(noon.Add(d))}
	}
	for _, c := range []struct {
		name    string
		reason  wire.Reason
		version time.Duration // after noon, which is when it is declined
		want    time.Duration
	}{
		{"its writer", wire.ReasonWriter, 0, DeclinedLife},
		{"its writer, from the future", wire.ReasonWriter, 10 * time.Hour, DeclinedLife},
		{"hours ahead", wire.ReasonClock, 10 * time.Hour, 10*time.Hour - skew},
		{"a year ahead", wire.ReasonClock, 365 * 24 * time.Hour, 365*24*time.Hour - skew},
		{"a second too early", wire.ReasonClock, skew + time.Second, time.Second},
		{"the peer is a little behind", wire.ReasonClock, skew, clockSlack},
		{"and still", wire.ReasonClock, skew - clockSlack, clockSlack},
		{"and still so later", wire.ReasonClock, skew - time.Minute, time.Minute},
		{"the peer is far behind", wire.ReasonClock, -time.Hour, DeclinedLife},
		{"before 2020", wire.ReasonClock, -20 * 365 * 24 * time.Hour, DeclinedLife},
	} {
		r := reconcile.DeclinedRecord{Version: at(c.version), Reason: c.reason, At: noon}
		if got := again(&r, skew).Sub(noon); got != c.want {
			t.Errorf("%s: after %s, want %s", c.name, got, c.want)
		}
	}
}

// The oldest give way, and what is handed out is the caller's.
func TestRejectionsAreBounded(t *testing.T) {
	var rs Rejections
	of := func(i int) refusedName { return refusedName{1, dbadapter.Digest{uint64(i)}} }
	for i := range MaxRejections + 10 {
		rs.add(of(i), Rejection{Version: dbadapter.Version{Clock: dbadapter.Timestamp(i)}})
		rs.add(of(i), Rejection{Version: dbadapter.Version{Clock: dbadapter.Timestamp(i)}, Reason: "the last"})
	}
	list := rs.List()
	if len(list) != MaxRejections || rs.Count() != MaxRejections || list[0].Version.Clock != 10 || list[0].Reason != "the last" {
		t.Errorf("%d remembered, the first %+v", len(list), list[0])
	}
	for i, r := range list {
		if r.Version.Clock != dbadapter.Timestamp(i+10) {
			t.Fatalf("rejection %d is %+v", i, r)
		}
	}
	rs.remove(of(20))
	rs.remove(of(20))
	rs.remove(of(5)) // it has given way
	if rs.Count() != MaxRejections-1 || len(rs.List()) != MaxRejections-1 {
		t.Errorf("%d remembered", rs.Count())
	}
	// What is handed out is the caller's.
	rs.add(of(1<<20), Rejection{Key: []byte("key")})
	list = rs.List()
	list[len(list)-1].Key[0] = 'X'
	if again := rs.List(); string(again[len(again)-1].Key) != "key" {
		t.Error("a caller has changed what is remembered")
	}
}

// Of the versions of a key, and of the keys of an index, that were refused, those go that are not
// later than what is held.
func TestRejectionsOfAKey(t *testing.T) {
	const crowded = 12345
	var rs Rejections
	of := func(index dbadapter.Index, key string, minute int, digest uint64) *dbadapter.Hashed {
		r := dbadapter.Record{Key: []byte(key), Version: dbadapter.Version{Clock: dbadapter.TimestampAt(noon.Add(time.Duration(minute) * time.Minute)), Writer: 1}}
		return &dbadapter.Hashed{Record: r, Index: index, Digest: dbadapter.Digest{digest, uint64(minute)}}
	}
	for i := range MaxRejections + 3 {
		r := of(dbadapter.Index(crowded+1+i), "filler", 0, uint64(i))
		rs.add(refusedName{r.Index, r.Digest}, Rejection{Key: r.Key, Version: r.Version})
	}
	for _, r := range []*dbadapter.Hashed{of(crowded, "1", 1, 1), of(crowded, "1", 2, 1), of(crowded, "1", 2, 2), of(crowded, "1", 3, 1), of(crowded, "2", 1, 3)} {
		rs.add(refusedName{r.Index, r.Digest}, Rejection{Key: r.Key, Version: r.Version})
	}
	rs.Held(of(crowded, "1", 2, 2))
	if n := rs.Count(); n != MaxRejections-2 || len(rs.order) != n || len(rs.under[crowded]) != 3 {
		t.Errorf("%d are left, %d in order, and %v", n, len(rs.order), rs.under[crowded])
	}
	for range 3 {
		rs.Held(of(crowded, "1", 9, 9))
		rs.Held(of(crowded, "2", 9, 9))
	}
	if n := rs.Count(); n != MaxRejections-5 || len(rs.under[crowded]) != 0 || len(rs.under) > n {
		t.Errorf("%d are left", n)
	}
}
