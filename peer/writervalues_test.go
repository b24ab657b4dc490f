package peer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/internal/placement"
)

// By placement writer values of all sizes are read at each node, and scans give them.
func TestValuesByPlacementWriter(t *testing.T) {
	c := newReplicatedCluster(t, placement.Writer, 4, 3, Config{NoPush: true})
	for i := range c.nodes {
		key, value := fmt.Sprint("key ", i), strings.Repeat("v", 64<<10*i)
		_, err := c.put(i, key, value, Quorum)
		c.must(err)
		for j := range c.nodes {
			if r, err := c.spaces[j].Get(t.Context(), []byte(key)); err != nil || string(r.Value) != value {
				t.Errorf("%s of %d bytes, read at %d: %d bytes, %v", key, len(value), j, len(r.Value), err)
			}
		}
	}
	for j := range c.nodes {
		records := 0
		for r, err := range c.spaces[j].Scan(t.Context(), nil) {
			c.must(err)
			if want := fmt.Sprint("key ", records); string(r.Key) != want || len(r.Value) != 64<<10*records {
				t.Errorf("a scan at %d: %q with %d bytes", j, r.Key, len(r.Value))
			}
			records++
		}
		if records != len(c.nodes) {
			t.Errorf("a scan at %d gives %d records", j, records)
		}
	}
}
