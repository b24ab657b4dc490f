package peer

import (
	"testing"

	"github.com/syncd-io/syncd/internal/route"
)

// A look-up that asks the directory, too, counts what the shard's hosts were asked before that once.
func TestRequestsAreCountedOnce(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 3)
	if _, err := c.put(0, "key", "1", route.All); err != nil {
		t.Fatal(err)
	}
	c.follow()
	for i, ns := range c.spaces {
		f, err := ns.lookUp(t.Context(), []byte("key"), true)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[*route.Answer]int{}
		for _, h := range f.Heard {
			if h.Answer != nil {
				seen[h.Answer]++
			}
		}
		t.Logf("node %d: %d requests, %d answers, %d of them different", i, f.Requests, len(f.Heard), len(seen))
		if f.Requests > len(seen) {
			t.Errorf("node %d: %d requests, and %d answers", i, f.Requests, len(seen))
		}
	}
}
