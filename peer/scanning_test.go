package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

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
		_, err := c.put(i%len(c.nodes), key, value, All)
		c.must(err)
		want = append(want, fmt.Sprintf("%s=%.20s", key, value))
	}
	_, err := c.spaces[0].Delete(c.t.Context(), []byte("key 07"), Ack(All))
	c.must(err)
	return slices.Delete(want, 7, 8)
}

// A scan at any node yields all records of all shards, by key, and goes on behind any key; also
// where there is no room for its pages.
func TestScanOverShards(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 5)
	want := c.filled()
	room := func(n int64) ScanOption { return func(s *scan) { s.Room = n } }
	for i, ns := range c.spaces {
		for name, test := range map[string]struct {
			prefix  string
			options []ScanOption
			want    []string
		}{
			"all":                {"key", nil, want},
			"behind a key":       {"key", []ScanOption{After([]byte("key 39"))}, want[39:]},
			"of a prefix":        {"key 1", nil, want[9:19]},
			"without room":       {"key", []ScanOption{room(0)}, want},
			"with room for one":  {"key", []ScanOption{room(wire.BatchBytes)}, want},
			"of what is nowhere": {"none", nil, nil},
		} {
			if got, err := scanned(t.Context(), ns, test.prefix, test.options...); err != nil || !slices.Equal(got, test.want) {
				t.Errorf("node %d, %s: %q, %v", i, name, got, err)
			}
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
	away := false
	var got []string
	for r, err := range asker.Scan(t.Context(), []byte("key")) {
		c.must(err)
		got = append(got, fmt.Sprintf("%s=%.20s", r.Key, r.Value))
		if !away {
			away = true
			c.must(c.nodes[1].Close(context.Background()))
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
	if !errors.Is(err, ErrTooFew) || !strings.Contains(err.Error(), "shard") {
		t.Errorf("no host is there: %d records, %v", len(got), err)
	}
	if len(got) > 0 && !slices.Equal(got, want[:len(got)]) {
		t.Errorf("a gap before the error: %q", got)
	}
}
