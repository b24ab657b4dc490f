package peer

import (
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/placement"
)

// By placement writer an import for all hosts waits a moment for what one host holds to come to the other one, and leaves it as it
// is: made anew, a dated item would get the date of now.
func TestImportAwaitsWhatArrives(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	key := "arrives"
	items := []Item{{Key: []byte(key), Value: []byte("value")}}
	home := c.spaces[0].core.OwnShard([]byte(key))
	at := c.holding(key, home)
	c.follow()
	first, err := c.spaces[0].Import(t.Context(), sequence(items))
	if err != nil || first.Written != 1 || first.Items != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	c.follow()
	other := slices.IndexFunc(c.spaces, func(ns *Namespace) bool { return ns != c.spaces[at[0]] && ns != c.spaces[at[1]] })
	type end struct {
		got ImportResult
		err error
	}
	done := make(chan end, 1)
	go func() {
		got, err := c.spaces[other].Import(t.Context(), sequence(items), Acks(AckAll))
		done <- end{got, err}
	}()
	for {
		select {
		case e := <-done:
			if e.err != nil || e.got.Unchanged != 1 {
				t.Errorf("%+v, %v", e.got, e.err)
			}
			return
		case <-time.After(50 * time.Millisecond):
			for _, set := range []placement.Shard{home, c.spaces[0].core.Entries([]byte(key))} {
				hosts := c.holding(key, set)
				sh, err := c.spaces[hosts[0]].numbered(set)
				c.must(err)
				_, err = sh.sync(t.Context(), c.nodes[hosts[1]].ID(), SyncOptions{})
				c.must(err)
			}
		}
	}
}
