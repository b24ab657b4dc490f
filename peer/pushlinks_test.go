package peer

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
)

// While a node dials a member that does not answer, it goes on to hear which connections
// come and go: the host waits until it has.
func TestLinksAreHeardWhileOneIsDialled(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel takes connections, and nothing answers
	must(t, err)
	defer silent.Close()
	n := openForTest(t, Config{ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"}, SyncInterval: time.Hour, Limits: Limits{DialTimeout: time.Minute}})
	ns := createForTest(t, n, Policy{})
	id := openForTest(t, Config{ListenAddrs: []string{}}).ID()
	must(t, errOf(n.AddPeer(t.Context(), fmt.Sprintf("/ip4/127.0.0.1/tcp/%d/p2p/%s", silent.Addr().(*net.TCPAddr).Port, id))))
	must(t, ns.SetRole(t.Context(), id, RoleRead))
	if _, err := n.CreateNamespace(t.Context(), "another", Policy{}); err != nil { // it looks for links
		t.Fatal(err)
	}
	dial, err := silent.Accept()
	must(t, err)
	defer dial.Close()
	told, err := n.host.EventBus().Emitter(new(event.EvtPeerConnectednessChanged))
	must(t, err)
	defer told.Close()
	stranger := ID("stranger")
	for range 1000 {
		must(t, told.Emit(event.EvtPeerConnectednessChanged{Peer: stranger, Connectedness: network.Connected}))
	}
	_ = dial.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := io.Copy(io.Discard, dial); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("what is told of connections waits until the dial has ended")
	}
}
