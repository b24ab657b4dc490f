package peer_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/syncd-io/syncd/peer"
)

// onlyTCP is where nodes listen whose peers count or break connections by
// Config.Dialed: where TCP is slow to connect, a peer dials QUIC besides.
var onlyTCP = []string{"/ip4/127.0.0.1/tcp/0"}

// A host made beforehand carries a node, shows each connection that it dials, and
// stays open when the node closes.
func TestNewHost(t *testing.T) {
	var dialed []peer.ID
	refuse := errors.New("not now")
	h, err := peer.NewHost(peer.Config{Dialed: func(_ context.Context, to peer.ID, conn net.Conn) (net.Conn, error) {
		dialed = append(dialed, to)
		if len(dialed) <= 2 { // a dial is tried twice
			return nil, refuse
		}
		return struct{ net.Conn }{conn}, nil
	}})
	must(t, err)
	defer h.Close()
	na, nb := open(t, peer.Config{ListenAddrs: onlyTCP}), open(t, peer.Config{Host: h})
	if _, err := nb.Connect(t.Context(), na.Addrs()[0]); !errors.Is(err, peer.ErrUnreachable) {
		t.Errorf("connect over a refused connection: %v", err)
	}
	sa := create(t, na, peer.Policy{})
	join(t, sa, nb, peer.RoleWrite)
	if nb.ID() != h.ID() || !slices.Equal(dialed, []peer.ID{na.ID(), na.ID(), na.ID()}) {
		t.Errorf("node %s on host %s dialled %v", nb.ID(), h.ID(), dialed)
	}
	sync1(t, sa, nb.ID())
	shut(t, nb)
	if len(h.Network().ListenAddresses()) == 0 {
		t.Error("the node has closed a host that is not its own")
	}
	if _, err := peer.NewHost(peer.Config{ListenAddrs: []string{"nowhere"}}); err == nil {
		t.Error("a host listens nowhere")
	}
}

// A caller that asks for a connection while another dial to the peer is about to
// fail gets a dial of its own.
func TestDialUnderWay(t *testing.T) {
	var mu sync.Mutex
	dials := 0
	begun, release := make(chan struct{}), make(chan struct{})
	h, err := peer.NewHost(peer.Config{Dialed: func(_ context.Context, _ peer.ID, conn net.Conn) (net.Conn, error) {
		mu.Lock()
		dials++
		first := dials == 1
		mu.Unlock()
		if first {
			close(begun)
			<-release
			return nil, errors.New("it was not there yet")
		}
		return conn, nil
	}})
	must(t, err)
	defer h.Close()
	na, nb := open(t, peer.Config{ListenAddrs: onlyTCP}), open(t, peer.Config{Host: h})
	results := make(chan error, 2)
	connect := func() {
		_, err := nb.Connect(t.Context(), na.Addrs()[0])
		results <- err
	}
	go connect()
	<-begun
	go connect()
	close(release)
	for range 2 {
		if err := <-results; err != nil {
			t.Errorf("connect: %v", err)
		}
	}
}

// More silent connections than there are places for handshakes keep no member
// out. (On loopback, which libp2p's bounds for each address exempt.)
func TestSilentConnections(t *testing.T) {
	na, nb, sa, sb := pair(t, peer.Config{}, peer.Config{}, peer.Policy{})
	put(t, sa, "k", "v")
	addr, _, _ := strings.Cut(na.Addrs()[0], "/p2p/")
	_, port, _ := strings.Cut(addr, "/tcp/")
	for range 300 {
		conn, err := net.Dial("tcp4", "127.0.0.1:"+port)
		must(t, err)
		defer conn.Close()
	}
	must(t, nb.Disconnect(na.ID()))
	// The handshakes of the others may still be on their way to the listener, so that
	// this one is the oldest for a moment, and gives way: a node dials again.
	if _, err := sb.Sync(t.Context(), na.ID(), peer.SyncOptions{}); err != nil {
		t.Logf("once more, after: %v", err)
		sync1(t, sb, na.ID())
	}
	equal(t, sa, sb)
}

// A node tells its announced addresses, instead of those that it listens on, to
// all that ask: callers, tickets, and the peers that it connects to.
func TestAnnouncedAddrs(t *testing.T) {
	const nat = "/ip4/192.0.2.7/tcp/4001"
	na, nb := open(t, peer.Config{}), open(t, peer.Config{})
	port, _, _ := strings.Cut(strings.TrimPrefix(na.Addrs()[0], "/ip4/127.0.0.1/"), "/p2p/")
	announce := []string{nat, "/dns4/localhost/" + port, nat + "/p2p/" + na.ID().String()}
	key := na.Key()
	shut(t, na)
	na = open(t, peer.Config{Identity: key, ListenAddrs: []string{"/ip4/127.0.0.1/" + port}, AnnounceAddrs: announce})
	id := "/p2p/" + na.ID().String()
	if want := []string{nat + id, "/dns4/localhost/" + port + id}; !slices.Equal(na.Addrs(), want) {
		t.Errorf("the node has the addresses %v, want %v", na.Addrs(), want)
	}
	// No node listens at the ticket's first address; its second is a name.
	sa := create(t, na, peer.Policy{})
	sb := join(t, sa, nb, peer.RoleWrite)
	put(t, sb, "k", "v")
	sync1(t, sb, na.ID())
	equal(t, sa, sb)
	for _, p := range nb.Peers() {
		if p.ID == na.ID() && (!slices.Contains(p.Addrs, nat) || slices.Contains(p.Addrs, "/ip4/127.0.0.1/"+port)) {
			t.Errorf("the peer remembers %v, want what was announced", p.Addrs)
		}
	}
}

func TestAnnouncedAddrsAreChecked(t *testing.T) {
	other := open(t, peer.Config{}).ID().String()
	for addr, why := range map[string]string{
		"":                                     "empty",
		"192.0.2.1:4001":                       "must begin with /",
		"/ip4/192.0.2.1":                       "TCP port",
		"/ip4/192.0.2.1/udp/4001":              "quic-v1",
		"/ip4/192.0.2.1/udp/0/quic-v1":         "port 0",
		"/ip6/::/udp/4001/quic-v1":             "all interfaces",
		"/ip4/192.0.2.1/tcp/4001/ws":           "TCP port",
		"/ip4/192.0.2.1/tcp/0":                 "port 0",
		"/ip4/0.0.0.0/tcp/4001":                "all interfaces",
		"/ip6/::/tcp/4001":                     "all interfaces",
		"/unix/tcp/tcp/4001":                   "TCP port",
		"/ip4/192.0.2.1/tcp/4001/p2p/" + other: "names node " + other,
		"/p2p/" + other:                        "names node",
		"/dns4/" + strings.Repeat("x.", 300) + "example/tcp/1": "512 bytes",
	} {
		_, err := peer.Open(t.Context(), peer.Config{AnnounceAddrs: []string{addr}})
		if !errors.Is(err, peer.ErrInvalid) || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "announce") {
			t.Errorf("announce %q: %v, want an error that says %q", addr, err, why)
		}
	}
	many := slices.Repeat([]string{"/ip4/192.0.2.1/tcp/4001"}, peer.MaxAddrs+1)
	if _, err := peer.Open(t.Context(), peer.Config{AnnounceAddrs: many}); !errors.Is(err, peer.ErrLimit) {
		t.Errorf("%d addresses: %v", len(many), err)
	}
	h, err := peer.NewHost(peer.Config{AnnounceAddrs: many[:1]})
	must(t, err)
	defer h.Close()
	if _, err := peer.Open(t.Context(), peer.Config{Host: h, AnnounceAddrs: many[:1]}); !errors.Is(err, peer.ErrInvalid) {
		t.Errorf("a host of the caller's, and addresses to announce: %v", err)
	}
}
