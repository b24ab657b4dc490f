package peer

import (
	"errors"
	"testing"

	"github.com/syncd-io/syncd/internal/route"
)

// A wait for all hosts does not pass over one that was removed, and that the layout still names: neither of a key
// nor of everything.
func TestWaitForAllHeedsARemovedHost(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 4)
	_, err := c.put(0, "key", "1", route.All)
	c.must(err)
	hosts, _ := c.hosts("key")
	stays, leaves := hosts[0], hosts[1]
	if leaves == 0 { // the founder removes
		stays, leaves = leaves, stays
	}
	c.must(c.spaces[0].Remove(t.Context(), c.nodes[leaves].ID()))
	if stays != 0 {
		_, err := c.spaces[stays].sync(t.Context(), nil, c.nodes[0].ID(), SyncOptions{})
		c.must(err)
	}
	for _, o := range []WaitOptions{{Key: []byte("key")}, {}} {
		if w, err := c.spaces[stays].Wait(t.Context(), o); !errors.Is(err, ErrUnreachable) {
			t.Errorf("a wait for %q: %+v, %v", o.Key, w, err)
		}
	}
}
