package peer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// By placement writer a node that hosts the record's shard reads its own put, and deletes it, where the host of the directory that
// answers has not heard of it and holds the tombstone of before.
func TestOwnPutOverATombstone(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	key, asker, hosts, _ := c.onTwo()
	_, err := asker.Delete(t.Context(), []byte(key), Acks(AckAll))
	c.must(err)
	c.follow()
	for _, h := range hosts {
		for _, sh := range c.spaces[h].shards() {
			for i, o := range c.nodes {
				if i != h {
					_, _ = sh.sync(t.Context(), o.ID(), SyncOptions{})
				}
			}
		}
	}
	serve := c.silences(hosts[0], asker)
	v, err := asker.Put(t.Context(), []byte(key), []byte("second"))
	c.must(err)
	serve()
	c.silences(hosts[1], asker)
	c.nearest(asker, hosts[0], hosts[1])
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	if got, err := asker.Get(ctx, []byte(key)); got.Version != v || err != nil && !errors.Is(err, ErrUnsure) {
		t.Errorf("it reads %q, %v", got.Value, err)
	}
	if _, err = asker.Delete(ctx, []byte(key)); errors.Is(err, dbadapter.ErrDeleted) || errors.Is(err, ErrNotFound) {
		t.Errorf("it deletes what it has put: %v", err)
	}
}
