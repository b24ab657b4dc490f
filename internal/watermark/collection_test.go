package watermark

import (
	"reflect"
	"testing"
	"time"
)

// Of two sets the collection is as far as that of both: unknown where it is of one.
func TestCollectionPlus(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	a := Collection{
		Waiting: 2, Counted: true, Oldest: at(5), Mark: at(3), Floor: at(1),
		Holding: []Holding{{"a", "old", at(2), at(9)}, {"c", "other", at(2), time.Time{}}},
	}
	b := Collection{
		Waiting: 1, Counted: true, Oldest: at(4), Mark: at(4), Floor: at(2), Recovering: true,
		Holding: []Holding{{"a", "older", at(1), at(8)}, {"b", "else", at(2), at(7)}},
	}
	want := Collection{
		Waiting: 3, Counted: true, Oldest: at(4), Mark: at(3), Floor: at(2), Recovering: true,
		Holding: []Holding{{"a", "older", at(1), at(9)}, {"b", "else", at(2), at(7)}, {"c", "other", at(2), time.Time{}}},
	}
	for _, sum := range []Collection{a.Plus(b), b.Plus(a)} {
		if !reflect.DeepEqual(sum, want) {
			t.Errorf("%+v; want %+v", sum, want)
		}
	}
	if len(a.Holding) != 2 || a.Holding[0].Reason != "old" {
		t.Errorf("the sum has changed what it was made of: %+v", a)
	}
	quiet := Collection{} // nothing waits, and no mark is known
	if sum := a.Plus(quiet); sum.Oldest != at(5) || !sum.Mark.IsZero() || sum.Counted || sum.Floor != at(1) {
		t.Errorf("with a set of which nothing is known: %+v", sum)
	}
}
