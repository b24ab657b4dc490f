package peer

import (
	"fmt"
	"testing"
)

// What a node writes right after it has joined is read at once at nodes that have not heard
// of it: they make their list of members equal with that of the host.
func TestRecordsOfANewWriterAreRead(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 4)
	c.join()
	for i := range 8 {
		key := fmt.Sprint("key ", i)
		must(t, errOf(c.put(4, key, "by the newcomer", All)))
		for at, ns := range c.spaces {
			if r, err := ns.Get(t.Context(), []byte(key)); err != nil || string(r.Value) != "by the newcomer" {
				t.Errorf("node %d reads %q of %q: %v", at, r.Value, key, err)
			}
		}
	}
}
