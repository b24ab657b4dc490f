package peer_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/syncd-io/syncd/peer"
)

// A host made beforehand carries a node, dials as it was told to, and stays
// open when the node closes.
func TestNewHost(t *testing.T) {
	var dials atomic.Int32
	h, err := peer.NewHost(peer.HostConfig{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, address)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	_, nb, sa, _ := pair(t, peer.Config{}, peer.Config{Host: h}, peer.Policy{})
	if nb.ID() != h.ID() || dials.Load() != 1 {
		t.Errorf("node %s on host %s, %d dials", nb.ID(), h.ID(), dials.Load())
	}
	sync1(t, sa, nb.ID())
	shut(t, nb)
	if len(h.Network().ListenAddresses()) == 0 {
		t.Error("the node has closed a host that is not its own")
	}
	if _, err := peer.NewHost(peer.HostConfig{ListenAddrs: []string{"nowhere"}}); err == nil {
		t.Error("a host listens nowhere")
	}
}
