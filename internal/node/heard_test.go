package node

import (
	"errors"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A greeting measures the peer's clock where this node began the sync, and shows a
// twin on either side; neither of two is synced with until one has been silent.
func TestHeardGreetings(t *testing.T) {
	m := newMachine(1)
	ns := m.create("notes", Policy{})
	hear := func(incarnation uint64, ahead time.Duration, left time.Time) error {
		m.clock = m.clock.Add(time.Second)
		return ns.heard("x", &wire.Greeting{Incarnation: incarnation, Tau: dbadapter.TimestampAt(m.clock), Time: uint64(m.clock.Add(ahead).UnixMilli())}, left)
	}
	if err := hear(1, 0, time.Time{}); err != nil || len(m.Offsets()) > 0 {
		t.Errorf("as a responder: %v, %+v", err, m.Offsets())
	}
	if err := hear(2, 5*time.Second, m.clock.Add(990*time.Millisecond)); err != nil {
		t.Error(err)
	}
	if o, ok := m.Offset("x"); !ok || (o.By-5*time.Second).Abs() > o.Error || o.Error > 6*time.Millisecond || !o.Off() {
		t.Errorf("%+v, %v", o, ok)
	}
	if err := hear(1, 0, time.Time{}); !errors.Is(err, reconcile.ErrTwin) {
		t.Errorf("the first comes back: %v", err)
	}
	if list := ns.Twins(); len(list) != 1 || list[0].Peer != "x" || list[0].Incarnations != [2]uint64{1, 2} {
		t.Errorf("%+v", list)
	}
	if err := hear(2, 0, time.Time{}); !errors.Is(err, reconcile.ErrTwin) {
		t.Errorf("the second comes back: %v", err)
	}
	for range int(TwinLife / time.Second) {
		if err := hear(2, 0, time.Time{}); !errors.Is(err, reconcile.ErrTwin) {
			t.Fatalf("soon after both: %v", err)
		}
	}
	if err := hear(2, 0, time.Time{}); err != nil || len(ns.Twins()) > 0 {
		t.Errorf("long after the first: %v, %+v", err, ns.Twins())
	}
}
