package peer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// A wait for a key ends once all hosts of its shard hold it, at whatever node it begins; the
// one that lacks it is given it, and the later version counts. A wait for everything is for
// the hosts of what the node holds.
func TestWaitShards(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 5)
	hosts, others := c.hosts("key")
	old := c.write(hosts[0], "key", "old")
	v := c.write(hosts[0], "key", "value")
	asker := c.spaces[others[0]]
	for _, version := range []dbadapter.Version{old, v, {}} {
		got, err := asker.Wait(t.Context(), WaitOptions{Key: []byte("key"), Version: version})
		if err != nil || len(got.Held) != 2 || len(got.Missing) != 0 {
			t.Fatalf("%s: %+v, %v", version, got, err)
		}
	}
	if r := c.held(hosts[1], "key"); r == nil || r.Version != v {
		t.Fatalf("the other host holds %+v", r)
	}
	for name, o := range map[string]WaitOptions{
		"for three of two hosts":    {Key: []byte("key"), Count: 3},
		"for one that is no host":   {Key: []byte("key"), Peers: []ID{c.nodes[others[1]].ID()}},
		"of all, for so many hosts": {Count: 4},
	} {
		at := asker
		if o.Key == nil {
			at = c.spaces[hosts[0]]
		}
		if _, err := at.Wait(t.Context(), o); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := asker.Wait(t.Context(), WaitOptions{Key: []byte("none")}); !errors.Is(err, ErrNotFound) {
		t.Errorf("for nothing: %v", err)
	}
	c.write(hosts[0], "key", "third")
	if got, err := c.spaces[hosts[0]].Wait(t.Context(), WaitOptions{}); err != nil || len(got.Held) == 0 || len(got.Missing) != 0 {
		t.Errorf("for everything: %+v, %v", got, err)
	}
	if r := c.held(hosts[1], "key"); r == nil || string(r.Value) != "third" {
		t.Errorf("the other host holds %+v", r)
	}
	v = c.write(hosts[0], "key", "fourth")
	c.must(c.nodes[hosts[1]].Close(context.Background()))
	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	got, err := asker.Wait(soon, WaitOptions{Key: []byte("key"), Version: v, Count: 2})
	if !errors.Is(err, ErrUnconfirmed) || len(got.Held) > 1 || len(got.Missing) == 0 {
		t.Errorf("a host is away: %+v, %v", got, err)
	}
}
