package watermark

import (
	"reflect"
	"testing"
	"time"

	"github.com/syncd-io/syncd/peer/status"
)

// Of two sets the collection is as far as that of both: unknown where it is of one.
func TestCollectionPlus(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	a := status.Collection{
		Waiting: 2, Counted: true, Oldest: at(5), Mark: at(3), Floor: at(1),
		Holding: []status.Holding{{Member: "a", Reason: "old", Since: at(2), Synced: at(9)}, {Member: "c", Reason: "other", Since: at(2), Synced: time.Time{}}},
	}
	b := status.Collection{
		Waiting: 1, Counted: true, Oldest: at(4), Mark: at(4), Floor: at(2), Recovering: true,
		Holding: []status.Holding{{Member: "a", Reason: "older", Since: at(1), Synced: at(8)}, {Member: "b", Reason: "else", Since: at(2), Synced: at(7)}},
	}
	want := status.Collection{
		Waiting: 3, Counted: true, Oldest: at(4), Mark: at(3), Floor: at(2), Recovering: true,
		Holding: []status.Holding{{Member: "a", Reason: "older", Since: at(1), Synced: at(9)}, {Member: "b", Reason: "else", Since: at(2), Synced: at(7)}, {Member: "c", Reason: "other", Since: at(2), Synced: time.Time{}}},
	}
	for _, sum := range []status.Collection{Both(a, b), Both(b, a)} {
		if !reflect.DeepEqual(sum, want) {
			t.Errorf("%+v; want %+v", sum, want)
		}
	}
	if len(a.Holding) != 2 || a.Holding[0].Reason != "old" {
		t.Errorf("the sum has changed what it was made of: %+v", a)
	}
	quiet := status.Collection{} // nothing waits, and no mark is known
	if sum := Both(a, quiet); sum.Oldest != at(5) || !sum.Mark.IsZero() || sum.Counted || sum.Floor != at(1) {
		t.Errorf("with a set of which nothing is known: %+v", sum)
	}
}
