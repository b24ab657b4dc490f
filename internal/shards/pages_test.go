package shards

import (
	"errors"
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/changes"
	"github.com/syncd-io/syncd/internal/node"
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
	inCluster(t, 3, func(t *testing.T, c *cluster) {
		x, asker := c.hosts[0], c.hosts[2]
		for i := range 3 {
			x.alone(fmt.Sprint("a", i), "value")
		}
		r := must(NewAsker(asker.ns, 0))
		watched := func(cursor changes.Cursor, lie func(a *wire.ChangesAnswer)) (*WatchPage, error) {
			t.Helper()
			q := r.changes(cursor, nil)
			_, m, _, err := asker.Ask(c.ctx, x.ID, q.Question)
			c.must(err)
			lie(m.(*wire.Reply).Answer.(*wire.ChangesAnswer))
			return q.read(x.ID, m.(*wire.Reply))
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
		scanned := func(most int) error {
			_, m, _, err := asker.Ask(c.ctx, x.ID, r.scan(nil, nil, 1<<20).Question)
			c.must(err)
			if n := len(m.(*wire.Reply).Answer.(*wire.ScanAnswer).Records); n < 2 {
				t.Fatalf("a page of %d records", n)
			}
			_, err = r.scan(nil, nil, most).read(x.ID, m.(*wire.Reply))
			return err
		}
		if err := scanned(1 << 20); err != nil {
			t.Error(err)
		}
		if err := scanned(1); !errors.Is(err, reconcile.ErrProtocol) {
			t.Errorf("a page of more than was asked for: %v", err)
		}
	})
}

// A host that may lack records compares nothing, and says at once that it is not whole.
func TestWhoIsNotWholeComparesNothing(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, c *cluster) {
		host, asker := c.hosts[0], c.hosts[1]
		host.lacks(0)
		a := must(NewAsker(asker.ns, 0))
		for _, lacks := range []bool{true, false} {
			records := must(a.Make([]node.Draft{draft("a", "value")}, make([][]*dbadapter.Record, 1)))
			_, m, _, err := asker.Ask(c.ctx, host.ID, a.holds(wire.AskHold{Records: records, On: []*dbadapter.Version{{}}}).Question)
			c.must(err)
			h := m.(*wire.Reply).Answer.(*wire.HoldAnswer)
			if err != nil || h.Whole == lacks || (c.held("a")[0] == "-") != lacks {
				t.Errorf("lacks %v: %+v, %v; it holds %s", lacks, h, err, c.held("a")[0])
			}
			c.rest(3)
		}
	})
}
