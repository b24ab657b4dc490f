package netio

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/syncd-io/syncd/dbadapter"
)

func TestRelaysAreChecked(t *testing.T) {
	const at = "/ip4/192.0.2.1/tcp/4747/p2p/"
	_, self := freshKey(t)
	var many []string
	for range MaxRelays + 1 {
		_, id := freshKey(t)
		many = append(many, at+id.String())
	}
	for _, addr := range []string{"", "/ip4/192.0.2.1/tcp/4747", at + self.String(), many[0] + "/p2p-circuit/p2p/" + self.String()} {
		if _, err := parseRelays(self, []string{addr}); !errors.Is(err, ErrAddr) {
			t.Errorf("relay %q: %v", addr, err)
		}
	}
	if _, err := parseRelays(self, many); !errors.Is(err, dbadapter.ErrLimit) {
		t.Errorf("%d relays: %v", len(many), err)
	}
	both := []string{many[0], "/ip4/192.0.2.1/udp/4747/quic-v1/p2p/" + many[0][len(at):]}
	if got, err := parseRelays(self, both); err != nil || len(got) != 1 || len(got[0].Addrs) != 2 {
		t.Errorf("two addresses of one relay: %v, %v", got, err)
	}
}

// Of a relay that is given by its address over TCP the one over QUIC is tried, too.
func TestRelayOverQUIC(t *testing.T) {
	of := func(s ...string) (out []ma.Multiaddr) {
		for _, a := range s {
			out = append(out, ma.StringCast(a))
		}
		return out
	}
	got := overQUIC(of("/dns4/relay.example/tcp/4747", "/ip6/2001:db8::1/tcp/1", "/ip4/192.0.2.1/udp/4747/quic-v1", "/ip4/192.0.2.1/tcp/1/ws"))
	if want := of("/dns4/relay.example/udp/4747/quic-v1", "/ip6/2001:db8::1/udp/1/quic-v1"); !slices.EqualFunc(got, want, ma.Multiaddr.Equal) {
		t.Errorf("%v, want %v", got, want)
	}
}

// silentRelay is a host whose streams lead to a relay that never answers.
type silentRelay struct {
	host.Host
	peers peerstore.Peerstore
}

func (h silentRelay) Peerstore() peerstore.Peerstore { return h.peers }

func (h silentRelay) NewStream(context.Context, peer.ID, ...protocol.ID) (network.Stream, error) {
	return &silentStream{reset: make(chan struct{})}, nil
}

type silentStream struct {
	network.Stream
	deadline time.Time
	reset    chan struct{}
	once     sync.Once
}

func (s *silentStream) Read([]byte) (int, error) {
	select {
	case <-s.reset:
	case <-time.After(time.Until(s.deadline)):
	}
	return 0, network.ErrReset
}

func (s *silentStream) Write(b []byte) (int, error)   { return len(b), nil }
func (s *silentStream) SetDeadline(t time.Time) error { s.deadline = t; return nil }
func (s *silentStream) Close() error                  { return nil }
func (s *silentStream) Reset() error                  { s.once.Do(func() { close(s.reset) }); return nil }

// A relay that does not answer holds a node up for no longer than relayTimeout, and not at
// all once the node stops.
func TestSilentRelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers, err := pstoremem.NewPeerstore()
		must(t, err)
		defer peers.Close()
		r := &relays{host: silentRelay{peers: peers}, reserved: map[peer.ID]bool{}}
		r.ctx, r.cancel = context.WithCancel(t.Context())
		begun := time.Now()
		if wait := r.reserve(peer.AddrInfo{ID: "relay"}); wait != relayRetry || time.Since(begun) != relayTimeout {
			t.Errorf("after %s it waits for %s", time.Since(begun), wait)
		}
		begun = time.Now()
		time.AfterFunc(time.Second, r.cancel)
		if r.reserve(peer.AddrInfo{ID: "relay"}); time.Since(begun) != time.Second {
			t.Errorf("it goes on for %s after the stop", time.Since(begun)-time.Second)
		}
	})
}

// While a relay does not answer, the events of the host are taken all the same: what is not
// taken holds up the host.
func TestSilentRelayHoldsUpNoEvents(t *testing.T) {
	silent, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableRelay())
	must(t, err)
	defer silent.Close()
	asked := make(chan struct{})
	var once sync.Once
	silent.SetStreamHandler("/libp2p/circuit/relay/0.2.0/hop", func(network.Stream) { once.Do(func() { close(asked) }) })
	h, err := libp2p.New(libp2p.NoListenAddrs)
	must(t, err)
	defer h.Close()
	r := &relays{at: []peer.AddrInfo{{ID: silent.ID(), Addrs: silent.Addrs()}}, host: h, reserved: map[peer.ID]bool{}}
	r.ctx, r.cancel = context.WithCancel(t.Context())
	if r.changed, err = h.EventBus().Emitter(new(event.EvtAutoRelayAddrsUpdated), eventbus.Stateful); err != nil {
		t.Fatal(err)
	}
	r.start()
	defer func() {
		_ = silent.Close() // libp2p waits for a relay's answer whatever the context says
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	}()
	<-asked
	emitter, err := h.EventBus().Emitter(new(event.EvtPeerConnectednessChanged))
	must(t, err)
	defer emitter.Close()
	emitted := make(chan struct{})
	go func() {
		defer close(emitted)
		for range 1000 {
			_ = emitter.Emit(event.EvtPeerConnectednessChanged{Peer: "another", Connectedness: network.Connected})
		}
	}()
	select {
	case <-emitted:
	case <-time.After(relayTimeout / 2):
		t.Error("the events wait for the relay")
	}
}
