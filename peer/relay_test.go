package peer

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	libp2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/pb"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/peer/status"
)

// relayed reports whether an address leads through a relay.
func relayed(a ma.Multiaddr) bool { return strings.Contains(a.String(), "/p2p-circuit") }

// relayedNet is a relay, a node that listens nowhere and has a place at the relay,
// and another member. The namespace is the relay's.
type relayedNet struct {
	relay, hidden, other *Node
	ns                   *Namespace // at the relay
	nsHidden, nsOther    *Namespace
	circuit              string // the address of the hidden node
}

func newRelayedNet(t *testing.T) *relayedNet {
	t.Helper()
	r := &relayedNet{relay: openForTest(t, Config{RelayService: true})}
	var err error
	r.ns, err = r.relay.CreateNamespace(t.Context(), "notes", Policy{})
	must(t, err)
	// It is a member before it asks for a place: a refusal would rest for 30 s.
	key, err := folder.FreshKey("")
	must(t, err)
	dir := t.TempDir()
	first, err := Open(t.Context(), Config{Dir: dir, Identity: key, ListenAddrs: []string{}})
	must(t, err)
	joinForTest(t, r.ns, first, RoleWrite)
	r.other = openForTest(t, Config{ListenAddrs: []string{}})
	r.nsOther = joinForTest(t, r.ns, r.other, RoleWrite)
	joinForTest(t, r.ns, first, RoleWrite) // and learns of the other
	must(t, first.Close(t.Context()))
	r.hidden = openForTest(t, Config{Dir: dir, Identity: key, ListenAddrs: []string{}, Relays: r.relay.Addrs()})
	r.nsHidden = notes(t, r.hidden)
	eventually(t, "the hidden node has a place at the relay", func() bool { return len(r.hidden.Addrs()) > 0 })
	r.circuit = r.hidden.Addrs()[0]
	return r
}

// A node that listens nowhere is dialled through its relay, and syncs there. The
// relay lets through members of one namespace only.
func TestRelay(t *testing.T) {
	r := newRelayedNet(t)
	for _, a := range r.hidden.host.Dialable() {
		if !relayed(a) {
			t.Errorf("the hidden node tells of %s", a)
		}
	}
	value := make([]byte, 1<<20)
	must(t, errOf(r.nsHidden.Put(t.Context(), []byte("k"), value)))
	must(t, errOf(r.other.Connect(t.Context(), r.circuit)))
	report, err := r.nsOther.Sync(t.Context(), r.hidden.self.id, SyncOptions{})
	if err != nil || !report.Verified || report.Applied != 1 {
		t.Errorf("a sync through the relay: %+v, %v", report, err)
	}
	for _, conn := range r.other.host.Network().ConnsToPeer(r.hidden.self.id) {
		if !relayed(conn.RemoteMultiaddr()) {
			t.Errorf("connected directly, over %s", conn.RemoteMultiaddr())
		}
	}
	for _, conn := range r.hidden.host.Network().ConnsToPeer(r.other.self.id) {
		if !conn.Stat().Limited {
			t.Error("the relay's limits are not known at the hidden node")
		}
	}
	if !slices.ContainsFunc(r.other.Peers(), func(p status.Peer) bool { return p.ID == r.hidden.self.id && p.Connected }) {
		t.Error("a peer behind a relay counts as not connected")
	}
	// The relay itself holds nothing of it.
	if _, err := r.ns.Get(t.Context(), []byte("k")); !errors.Is(err, ErrNotFound) {
		t.Errorf("the relay has the record: %v", err)
	}

	stranger := openForTest(t, Config{ListenAddrs: []string{}})
	if _, err := stranger.Connect(t.Context(), r.circuit); !errors.Is(err, ErrUnreachable) {
		t.Errorf("a stranger comes through the relay: %v", err)
	}
	at, err := libp2ppeer.AddrInfoFromString(r.relay.Addrs()[0])
	must(t, err)
	refused := func(n *Node) {
		t.Helper()
		var status client.ReservationError
		if _, err := client.Reserve(t.Context(), n.host, *at); !errors.As(err, &status) || status.Status != pb.Status_PERMISSION_DENIED {
			t.Errorf("a place for a stranger: %v", err)
		}
	}
	refused(stranger)
	// A member of another namespace of the relay may have a place, but does not
	// reach the members of this one.
	elsewhere, err := r.relay.CreateNamespace(t.Context(), "elsewhere", Policy{})
	must(t, err)
	joinForTest(t, elsewhere, stranger, RoleWrite)
	if _, err := client.Reserve(t.Context(), stranger.host, *at); err != nil {
		t.Errorf("a place for a member: %v", err)
	}
	if _, err := stranger.Connect(t.Context(), r.circuit); !errors.Is(err, ErrUnreachable) {
		t.Errorf("a member of another namespace comes through the relay: %v", err)
	}
}

// A node says that it cannot be dialled any more when its relay is gone, and
// that it can when the relay is back.
func TestRelayRestarts(t *testing.T) {
	r := newRelayedNet(t)
	told := make(chan []ma.Multiaddr, 16)
	must(t, r.hidden.host.FollowAddrs(func(addrs []ma.Multiaddr) { told <- addrs }))
	if addrs := <-told; len(addrs) == 0 {
		t.Fatal("no address at first")
	}
	// The relay loses its connections, and with them the places: again, where the node has its place
	// back before it has looked.
	for lost := false; !lost; {
		must(t, r.relay.host.Network().ClosePeer(r.hidden.self.id))
		select {
		case addrs := <-told:
			lost = len(addrs) == 0
		case <-time.After(time.Minute):
		}
	}
	for addrs := <-told; len(addrs) == 0; addrs = <-told {
	}
}

// A node is no relay unless it is told to be one.
func TestNoRelayByDefault(t *testing.T) {
	a, b := openForTest(t, Config{}), openForTest(t, Config{})
	at, err := libp2ppeer.AddrInfoFromString(a.Addrs()[0])
	must(t, err)
	if _, err := client.Reserve(t.Context(), b.host, *at); err == nil {
		t.Error("a node gave a place to a stranger")
	}
	if slices.ContainsFunc(a.host.Mux().Protocols(), func(p protocol.ID) bool { return p == "/libp2p/circuit/relay/0.2.0/stop" }) {
		t.Error("a node without relays takes circuits")
	}
}
