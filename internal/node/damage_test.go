package node

import (
	"reflect"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/watermark"
)

// mayLack makes a namespace one that has lost records, while it is open.
func mayLack(ns *Namespace) error {
	for _, set := range ns.Sets() {
		set.tenure.loses(ns.node.elapsed())
		if err := set.gc.Update(func(w *watermark.Watermark) bool { w.Recover(true); return true }); err != nil {
			return err
		}
	}
	return nil
}

// A state adds losses up, and names the shards; the number is not known once one of them is
// not, and the time is that of the first.
func TestLose(t *testing.T) {
	first := time.UnixMilli(1_800_000_000_000)
	for _, c := range []struct {
		missing [][]int64
		records int64
		shards  []placement.Shard
	}{
		{[][]int64{{0, 0, 0}}, 0, nil},
		{[][]int64{{2, 0, 1}}, 3, []placement.Shard{4}},
		{[][]int64{{0, 3, 0}, {1, 1, 0}}, 5, []placement.Shard{4, 7}},
		{[][]int64{{-1, 0, 5}, {0, 2, 0}}, -1, []placement.Shard{4, 7}},
		{[][]int64{{0, 2, -1}}, -1, []placement.Shard{7}},
	} {
		s := &State{Shards: []ShardState{{Shard: 4}, {Shard: 7}}}
		for i, missing := range c.missing {
			s.Lose(missing, first.Add(time.Duration(i)*time.Hour))
		}
		if want := (&Lost{c.records, first.UnixMilli(), c.shards}); !reflect.DeepEqual(s.Lost, want) {
			t.Errorf("%v: %+v; want %+v", c.missing, s.Lost, want)
		}
	}
}

// A loss is in the state until it is accepted. It does not hold up a set that has all again; what recovers does.
func TestLossIsAccepted(t *testing.T) {
	m, ns := newAlone()
	if ns.Lost() != nil || ns.Sets()[0].Recovers() {
		t.Fatalf("before a loss: %+v", ns.Lost())
	}
	succeeds(t, ns.update(func(s *State) error { s.Lose([]int64{1, 0}, m.Now()); return nil }))
	if ns = m.reopen(ns, false); ns.Lost() == nil || ns.Lost().Records != 1 || ns.Sets()[0].Recovers() {
		t.Fatalf("after it: %+v", ns.Lost())
	}
	for range 2 {
		if err := ns.AcceptLoss(); err != nil || ns.Lost() != nil || ns.Sets()[0].Recovers() {
			t.Errorf("accepted: %v, %+v", err, ns.Lost())
		}
	}
}
