package peer

import (
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/node"
)

// A node knows of the peers that it has synced with which of them push.
func TestWhichPeersPush(t *testing.T) {
	config := Config{ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"}, SyncInterval: time.Hour}
	quiet := config
	quiet.NoPush = true
	nodes, spaces := clusterForTest(t, Policy{}, config, config, quiet)
	for i, n := range nodes[1:] {
		must(t, errOf(spaces[i+1].Sync(t.Context(), nodes[0].ID(), SyncOptions{})))
		eventually(t, "it has said what it speaks", func() bool {
			spoken, err := nodes[0].host.Peerstore().SupportsProtocols(n.ID(), syncProtocol)
			return err == nil && len(spoken) > 0
		})
		if pushes := nodes[0].peerPushes(node.ID(n.ID())); pushes != (i == 0) {
			t.Errorf("node %d pushes: %v", i+1, pushes)
		}
	}
}
