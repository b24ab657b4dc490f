package peer

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A put stands whose entry comes while an import writes an older item as of now, over an entry whose author has ended: when the import
// offers its own entry, or when it has looked behind that one. The item's record does not name the put's version as seen.
func TestDatedItemBesideAPutUnderWay(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]bool{"behind the look": true, "at the entry": false} {
		t.Run(name, func(t *testing.T) {
			c := newWriterCluster(t, 4)
			key, _, hosts, _ := c.onTwo() // neither of the two asks itself
			shard, first := c.recordAt(hosts[0], key)
			entries := c.spaces[0].core.Entries([]byte(key))
			var rest []int
			for i := range c.nodes {
				if !slices.Contains(hosts, i) {
					rest = append(rest, i)
				}
			}
			c.now.Add(int64(time.Second))
			author, importer := c.spaces[rest[0]], c.spaces[rest[1]]
			items := []Item{{Key: []byte(key), Value: []byte("dated"), Time: c.nodes[0].now().Truncate(time.Millisecond)}}
			c.now.Add(int64(time.Second))
			c.entered(hosts[0], &dbadapter.Record{Key: []byte(key)}, shard, first)
			c.round()
			c.follow()
			came, released, ended := make(chan struct{}, 64), make(chan struct{}), make(chan error, 1)
			var once sync.Once
			late, begun := false, false
			put := func() {
				begun = true
				c.now.Add(int64(time.Second))
				go func() {
					_, err := author.Put(t.Context(), []byte(key), []byte("put"))
					ended <- err
				}()
				select {
				case <-came: // its entry is held
				case err := <-ended:
					t.Errorf("the put has ended: %v", err)
					ended <- err
				}
				c.now.Add(int64(time.Second))
			}
			for _, n := range c.nodes {
				c.hears(n, func(by ID, ask *wire.Ask) bool {
					switch q := ask.Question.(type) {
					case *wire.AskRecord:
						if early && late && by == importer.node.ID() && placement.Shard(q.Shard) == shard {
							once.Do(put)
						}
					case *wire.AskHold:
						switch {
						case q.Look:
						case by == author.node.ID() && placement.Shard(q.Shard) == shard:
							came <- struct{}{}
							<-released
						case !early && late && by == importer.node.ID() && placement.Shard(q.Shard) == entries && q.Records[0].Version.Writer != 0:
							once.Do(put)
						}
					}
					return true
				})
			}
			author.node.routing.close()
			importer.node.routing.close()
			if got, err := importer.Import(t.Context(), sequence(items)); !errors.Is(err, ErrUnsure) {
				t.Errorf("while the record may come: %+v, %v", got, err)
			}
			late = true
			c.pass(node.AbsentFor)
			c.follow()
			if got, err := importer.Import(t.Context(), sequence(items)); !errors.Is(err, ErrUnsure) {
				t.Errorf("beside the put: %+v, %v", got, err)
			}
			close(released)
			if !begun {
				t.Fatal("there was no put: this test shows nothing")
			}
			c.must(<-ended)
			for range 3 {
				c.meet()
			}
			for i := range c.nodes {
				if got, err := c.get(i, key); err != nil || got != "put" {
					t.Errorf("node %d reads %q, %v", i, got, err)
				}
			}
			if got, err := importer.Import(t.Context(), sequence(items)); err != nil || got != (ImportResult{Items: 1, Stale: 1}) {
				t.Errorf("behind the put: %+v, %v", got, err)
			}
		})
	}
}
