package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// scanned are the keys and values that a scan yields, and its error.
func scanned(ctx context.Context, ns *Namespace, prefix string, options ...ScanOption) (got []string, failed error) {
	for r, err := range ns.Scan(ctx, []byte(prefix), options...) {
		if err != nil {
			return got, err
		}
		got = append(got, fmt.Sprintf("%s=%.20s", r.Key, r.Value))
	}
	return got, nil
}

// filled writes records to all shards, some of which fill a page alone, and gives what a
// scan is to yield.
func (c *routedCluster) filled() (want []string) {
	large := strings.Repeat("v", wire.BatchBytes/2)
	for i := range 60 {
		key, value := fmt.Sprintf("key %02d", i), fmt.Sprint("value ", i)
		if i%10 == 0 {
			value = large
		}
		_, err := c.put(i%len(c.nodes), key, value, route.All)
		c.must(err)
		want = append(want, fmt.Sprintf("%s=%.20s", key, value))
	}
	gone := node.Draft{}
	gone.Record.Key, gone.Record.Deleted = []byte("key 07"), true
	_, err := c.spaces[0].offer(c.t.Context(), gone, true, route.All)
	c.must(err)
	return slices.Delete(want, 7, 8)
}

// A scan at any node yields all records of all shards, by key, and goes on behind any key.
func TestScanOverShards(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 5)
	want := c.filled()
	for i, ns := range c.spaces {
		if got, err := scanned(t.Context(), ns, "key"); err != nil || !slices.Equal(got, want) {
			t.Errorf("node %d: %q, %v", i, got, err)
		}
		if got, err := scanned(t.Context(), ns, "key", After([]byte("key 39"))); err != nil || !slices.Equal(got, want[39:]) {
			t.Errorf("node %d, behind a key: %q, %v", i, got, err)
		}
		if got, err := scanned(t.Context(), ns, "key 1"); err != nil || !slices.Equal(got, want[9:19]) {
			t.Errorf("node %d, of a prefix: %q, %v", i, got, err)
		}
		if got, err := scanned(t.Context(), ns, "key", WithTombstones()); err != nil || len(got) != len(want)+1 {
			t.Errorf("node %d, with tombstones: %d, %v", i, len(got), err)
		}
	}
	for range c.spaces[0].Scan(t.Context(), nil) {
		break // what fetches pages ends with the loop: the nodes close
	}
}

// A host that goes away in the middle of a scan is replaced by another one. Where there is
// none, the scan says so, and goes on behind its last key at another node, or later.
func TestScanGoesOnWithoutAHost(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 5)
	want := c.filled()
	asker := c.spaces[0]
	away := -1
	var got []string
	for r, err := range asker.Scan(t.Context(), []byte("key")) {
		c.must(err)
		got = append(got, fmt.Sprintf("%s=%.20s", r.Key, r.Value))
		if away < 0 {
			away = 1
			c.must(c.nodes[away].Close(context.Background()))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("a host has gone: %q", got)
	}
	// Now all other hosts go, too: what the node does not hold itself is missing, and that
	// is said.
	for i := 2; i < len(c.nodes); i++ {
		c.must(c.nodes[i].Close(context.Background()))
	}
	got, err := scanned(t.Context(), asker, "key")
	if !errors.Is(err, ErrUnsure) || !strings.Contains(err.Error(), "shard") {
		t.Errorf("no host is there: %d records, %v", len(got), err)
	}
	if len(got) > 0 && !slices.Equal(got, want[:len(got)]) {
		t.Errorf("a gap before the error: %q", got)
	}
}

// A scan that has no room for its pages fetches them when their turn comes, and yields the
// same.
func TestScanWithoutRoom(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 5)
	want := c.filled()
	for _, room := range []int64{0, wire.BatchBytes} {
		if got, err := scanned(t.Context(), c.spaces[0], "key", func(s *scan) { s.room = room }); err != nil || !slices.Equal(got, want) {
			t.Errorf("with room for %d bytes: %q, %v", room, got, err)
		}
	}
}

// A scan whose pages take longer than a look-up may take in all goes on as long as they
// come: the node's own bound of the bandwidth makes them slow.
func TestScanOverASlowLink(t *testing.T) {
	t.Parallel()
	c := newClusterOf(t, placement.Hash, 5, Config{NoPush: true, Bandwidth: Bandwidth{Receive: 1 << 30}})
	value := strings.Repeat("v", wire.BatchBytes)
	asker, has := c.spaces[0], map[placement.Shard]bool{}
	var want []string // a record of each shard that others hold, and no further one
	for i := range 100 {
		key := fmt.Sprintf("key %02d", i)
		home := asker.core.Home([]byte(key))
		if hosts, _ := c.hosts(key); has[home] || slices.Contains(hosts, 0) {
			continue
		}
		has[home] = true
		_, err := c.put(1, key, value, route.All)
		c.must(err)
		want = append(want, fmt.Sprintf("%s=%.20s", key, value))
	}
	perSecond := int64(len(want) * wire.BatchBytes / 13)
	slow := asker.node.bandwidth.receive
	slow.SetBurst(int(perSecond / burstPart))
	slow.SetLimit(rate.Limit(perSecond))
	asker.node.routing.close()
	begun := time.Now()
	if got, err := scanned(t.Context(), asker, "key"); err != nil || !slices.Equal(got, want) {
		t.Errorf("%d of %d records after %v, %v", len(got), len(want), time.Since(begun), err)
	}
	if took := time.Since(begun); took < routePatience {
		t.Errorf("the scan took %v, so that the test shows nothing", took)
	}
}

// A page of a host that is not sure is not taken.
func TestScanAsksHostsThatAreSure(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 4)
	want := c.filled()
	c.must(c.spaces[1].core.MayLack())
	for i, ns := range c.spaces {
		if got, err := scanned(t.Context(), ns, "key"); err != nil || !slices.Equal(got, want) {
			t.Errorf("node %d: %d records, %v", i, len(got), err)
		}
	}
	for _, ns := range c.spaces {
		c.must(ns.core.MayLack())
	}
	if got, err := scanned(t.Context(), c.spaces[0], "key"); !errors.Is(err, ErrUnsure) || len(got) > 0 {
		t.Errorf("no host is sure: %d records, %v", len(got), err)
	}
}

// A host that answers with what was not asked for is passed over.
func TestScanWithALyingHost(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 4)
	want := c.filled()
	hosts, others := c.hosts("key 01")
	asker, liar := c.spaces[others[0]], c.nodes[hosts[0]]
	own := *c.held(hosts[0], "key 01")
	forged, other := own, own
	forged.Value = []byte("forged")
	other.Key = []byte("key 01 of another shard")
	for asker.core.Home(other.Key) == asker.core.Home(own.Key) {
		other.Key = append(other.Key, '.')
	}
	for name, lie := range map[string]*wire.ScanAnswer{
		"forged":        {Settled: true, Records: []dbadapter.Record{forged}},
		"out of order":  {Settled: true, Records: []dbadapter.Record{own, own}},
		"another shard": {Settled: true, Records: []dbadapter.Record{other}},
		"not settled":   {},
		"no host":       {Elsewhere: &wire.Elsewhere{Epoch: 1 << 40}},
	} {
		var asked atomic.Int64
		c.lies(liar, asker, func(*wire.Ask) wire.Answering {
			asked.Add(1)
			return lie
		})
		asker.node.routing.close() // streams of before the lie
		asker.node.routing.mu.Lock()
		asker.node.routing.pages = route.Times{}
		for i, n := range c.nodes { // the liar is the nearest
			took := time.Second
			if i == hosts[0] {
				took = time.Millisecond
			}
			asker.node.routing.pages.Took(node.ID(n.ID()), took, asker.node.elapsed())
		}
		asker.node.routing.mu.Unlock()
		if got, err := scanned(t.Context(), asker, "key"); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %d records, %v", name, len(got), err)
		}
		if asked.Load() == 0 {
			t.Errorf("%s: the host was not asked", name)
		}
	}
}
