package peer

import (
	"errors"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/route"
)

// An old dated item overwrites nothing: neither what this host holds, nor what another host
// holds that this one has not seen.
func TestImportShardsSparesConcurrentWrites(t *testing.T) {
	c := newRoutedCluster(t, 3)
	hosts, _ := c.hosts("key")
	dated := c.base.Clock().Truncate(time.Millisecond)
	time.Sleep(2 * time.Millisecond)
	first, second := c.write(hosts[0], "key", "first"), c.write(hosts[1], "key", "second")
	got, err := c.spaces[hosts[0]].Import(t.Context(), sequence([]Item{{Key: []byte("key"), Value: []byte("old"), Time: dated}}), Acks(AckAll))
	if err != nil || got != (ImportResult{Items: 1, Stale: 1}) {
		t.Errorf("%+v, %v", got, err)
	}
	for i, want := range []dbadapter.Version{first, second} {
		if r := c.held(hosts[i], "key"); r == nil || r.Version != want {
			t.Errorf("host %d holds %+v, and wrote %s", i, r, want)
		}
	}
	c.current(hosts[0], hosts[1], "key")
	if second.Compare(first) < 0 {
		second = first
	}
	if r := c.held(hosts[0], "key"); r == nil || r.Version != second {
		t.Errorf("made equal, they hold %+v, and not %s", r, second)
	}
	if c.conflicts() == 0 {
		t.Error("the other write is no conflict")
	}
}

// A record that this host held before is not made anew, whatever another host says of it; one
// that was made of the item is.
func TestImportHeard(t *testing.T) {
	written, dated := dbadapter.Version{Clock: 5, Writer: 1, Incarnation: 1}, dbadapter.Version{Clock: 5}
	other := &dbadapter.Record{Version: dbadapter.Version{Clock: 6, Writer: 2, Incarnation: 1}}
	for _, v := range []dbadapter.Version{written, dated} {
		for _, foreign := range []bool{true, false} {
			for _, o := range []*route.Outcome{{Other: other}, {Declined: node.ErrDeclined}} {
				i := imported{ns: &node.Namespace{}, Item: node.Item{Time: time.Now()}, landing: landing{record: &dbadapter.Record{Version: v}, foreign: foreign}}
				i.heard("host", o)
				anew := !foreign && (v == written) == (o.Other != nil)
				if (i.record == nil) != anew || i.alone != (anew && o.Other == nil) {
					t.Errorf("version %s, foreign %t, %+v: %+v", v, foreign, o, i.landing)
				}
			}
		}
	}
}

// What a host has taken is not said to be nowhere, although its record was made anew since.
func TestImportExplainsWhatWasTaken(t *testing.T) {
	im := &shardImport{}
	i := &imported{ns: &node.Namespace{}, landing: landing{fresh: true}}
	if err := im.explain(t.Context(), i, 2, nil); !errors.Is(err, ErrUnconfirmed) {
		t.Error(err)
	}
	i = &imported{}
	if err := im.explain(t.Context(), i, 2, nil); !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrUnconfirmed) {
		t.Error(err)
	}
}
