package peer

import (
	"context"
	"io"
	"sync/atomic"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/internal/placement"
)

// While a host hangs, an import goes on without it where the others are enough, and the next one does not ask it.
func TestImportDoesNotAwaitAHostThatHangs(t *testing.T) {
	t.Parallel()
	for _, kind := range []placement.Kind{placement.Hash, placement.Prefix} {
		t.Run(kind.String(), func(t *testing.T) {
			c := newLocatedCluster(t, 4, kind)
			const hung, by = 3, 1
			var asked atomic.Int64
			c.nodes[hung].host.SetStreamHandler(routeProtocol, func(s network.Stream) {
				asked.Add(1)
				_, _ = io.Copy(io.Discard, s)
			})
			c.nodes[by].routing.close() // none is idle that goes on to be served
			ctx, cancel := context.WithTimeout(t.Context(), importPatience/2)
			defer cancel()
			for n, value := range []string{"first ", "second "} {
				before := asked.Load()
				items := shardItems(200*n, 200*(n+1), value)
				if got, err := c.spaces[by].Import(ctx, sequence(items)); err != nil || got.Items != 200 {
					t.Fatalf("%s: %+v, %v", value, got, err)
				}
				if n, again := asked.Load()-before, value == "second "; (n > 0) == again {
					t.Errorf("%s: it is asked %d times", value, n)
				}
			}
			if n := c.nodes[by].routing.isSlow(c.nodes[hung].ID(), c.nodes[by].elapsed()+importSlow); n {
				t.Error("it counts as slow for ever")
			}
		})
	}
}
