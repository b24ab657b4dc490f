package peer

import (
	"errors"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
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
