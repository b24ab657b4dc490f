package node

import (
	"errors"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/changes"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A page does not end in the midst of a change of several keys where it would lead no further,
// unless it would be larger than a message.
func TestChangesFillAPage(t *testing.T) {
	const asked, behind = changes.Cursor("0000000000000001.5"), changes.Cursor("0000000000000001.6")
	for _, test := range []struct {
		size, count int
		more        bool
	}{{1000, 2, false}, {300 << 10, 2, false}, {300 << 10, 3, false}, {700 << 10, 1, true}} {
		var told []changes.Event
		for range test.count + 1 {
			told = append(told, changes.Event{Cursor: asked, Kind: changes.Put, Record: &dbadapter.Record{Key: []byte("key"), Value: make([]byte, test.size)}})
		}
		told[test.count-1].Cursor = behind
		if !test.more {
			told = told[:test.count]
		}
		a := &wire.ChangesAnswer{Next: []byte(behind)}
		fillPage(a, told, asked)
		if len(a.Changes) != test.count || a.More != test.more || changes.Cursor(a.Next) != behind {
			t.Errorf("%+v: %d changes, more %v, next %s", test, len(a.Changes), a.More, a.Next)
		}
	}
}

// A host is not believed that leads a watch out of a listing without saying that it has ended, or
// into another log; nor one that gives a larger page of a scan than was asked for.
func TestPagesThatAreNotBelieved(t *testing.T) {
	w, shard := newTimedMovers(t)
	x, asker := w.all[0], w.all[2]
	for i := range 3 {
		w.put(0, w.keyIn(shard, i))
	}
	w.syncShard(0, 1, shard)
	r := must(asker.ns.Asker(shard))
	watched := func(cursor changes.Cursor, lie func(a *wire.ChangesAnswer)) (*WatchPage, error) {
		t.Helper()
		ask := must(r.Begin(x.ID, r.AskChanges(cursor, nil)))
		m := asker.routed(t, x.machine, ask)
		lie(m.(*wire.Reply).Answer.(*wire.ChangesAnswer))
		return r.Changes(x.ID, ask, m)
	}
	honest, err := watched(changes.FromStart, func(*wire.ChangesAnswer) {})
	if err != nil || honest.Next.Listing() || len(honest.Told) == 0 {
		t.Fatalf("%+v, %v", honest, err)
	}
	for name, lie := range map[string]func(a *wire.ChangesAnswer){
		"without the end of the listing": func(a *wire.ChangesAnswer) { a.Changes = a.Changes[:len(a.Changes)-1] },
		"empty":                          func(a *wire.ChangesAnswer) { a.Changes = nil },
	} {
		if _, err := watched(changes.FromStart, lie); !errors.Is(err, reconcile.ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := watched(honest.Next, func(a *wire.ChangesAnswer) { a.Next = []byte("0000000000000001.7") }); !errors.Is(err, reconcile.ErrProtocol) {
		t.Errorf("another log: %v", err)
	}
	scanned := func(most uint32) error {
		ask := must(r.Begin(x.ID, r.AskScan(nil, nil, 1<<20)))
		m := asker.routed(t, x.machine, ask)
		if n := len(m.(*wire.Reply).Answer.(*wire.ScanAnswer).Records); n < 2 {
			t.Fatalf("a page of %d records", n)
		}
		ask.Question.(*wire.AskScan).Most = most
		_, err := r.Page(x.ID, ask, m)
		return err
	}
	if err := scanned(1 << 20); err != nil {
		t.Error(err)
	}
	if err := scanned(1); !errors.Is(err, reconcile.ErrProtocol) {
		t.Errorf("a page of more than was asked for: %v", err)
	}
}
