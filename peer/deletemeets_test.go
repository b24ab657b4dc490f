package peer

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/syncd-io/syncd/internal/route"
)

// Of a put and a deletion on one version, by placement writer and at one moment, no entry is left that leads to no record: the key
// can be read at once.
func TestDeletionMeetsPut(t *testing.T) {
	c := newWriterCluster(t, 4)
	ended := map[int]string{}
	var keys []string
	for round := range 60 {
		key := fmt.Sprint("met by a deletion ", round)
		first, err := c.put(round%4, key, "first", route.All)
		c.must(err)
		keys = append(keys, key)
		var all sync.WaitGroup
		var put, deleted error
		all.Go(func() {
			_, put = c.spaces[(round+1)%4].PutIf(t.Context(), []byte(key), []byte("second"), first.Version)
		})
		all.Go(func() {
			_, deleted = c.spaces[(round+2)%4].DeleteIf(t.Context(), []byte(key), first.Version)
		})
		all.Wait()
		if put == nil && deleted == nil {
			t.Errorf("%q: both are acknowledged", key)
		}
		ended[round] = fmt.Sprint(put, "; ", deleted)
	}
	for range 3 {
		c.round()
		c.follow()
	}
	for round, key := range keys {
		for i, ns := range c.spaces {
			if _, err := ns.Get(t.Context(), []byte(key)); err != nil && !errors.Is(err, ErrDeleted) && !errors.Is(err, ErrNotFound) {
				t.Errorf("%q at node %d: %v (%s)", key, i, err, ended[round])
				break
			}
		}
	}
}
