package nodes_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/testnet/internal/nodes"
)

// Twenty nodes that have joined one after the other, by invitations of the first
// alone, hold all that each has written, and the same list of members.
func TestTwenty(t *testing.T) {
	const all = 20
	n := open(t, nodes.Config{Nodes: all, Memory: true, Interval: 2 * time.Second})
	for i := range all {
		put(t, n, i, fmt.Sprint("by ", i), "v")
	}
	converge(t, n)
	for i := range all {
		if ns := n.Namespace(i); ns.Info().Records != all || len(ns.Members()) != all {
			t.Errorf("node %d holds %d records and lists %d members", i, ns.Info().Records, len(ns.Members()))
		}
	}
}
