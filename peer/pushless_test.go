package peer

import (
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/node"
)

// A node knows of the peers that it has synced with which of them push.
func TestWhichPeersPush(t *testing.T) {
	var nodes []*Node
	var spaces []*Namespace
	for i := range 3 {
		n := openForTest(t, Config{ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"}, SyncInterval: time.Hour, NoPush: i == 2})
		nodes = append(nodes, n)
		if i == 0 {
			ns := createForTest(t, n, Policy{})
			spaces = append(spaces, ns)
			continue
		}
		ns := joinForTest(t, spaces[0], n, RoleWrite)
		spaces = append(spaces, ns)
		must(t, errOf(ns.Sync(t.Context(), nodes[0].ID(), SyncOptions{})))
		if pushes := nodes[0].peerPushes(node.ID(n.ID())); pushes != (i == 1) {
			t.Errorf("node %d pushes: %v", i, pushes)
		}
	}
}
