package peer_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	libp2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// rawHost is a libp2p host that does what the test says.
func rawHost(t *testing.T) host.Host {
	t.Helper()
	h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableMetrics(), libp2p.DisableRelay())
	must(t, err)
	t.Cleanup(func() { h.Close() })
	return h
}

func dialNode(t *testing.T, h host.Host, n *peer.Node) {
	t.Helper()
	info, err := libp2ppeer.AddrInfoFromString(n.Addrs()[0])
	must(t, err)
	must(t, h.Connect(t.Context(), *info))
}

// say opens a stream for a sync, writes, and returns all that comes back.
func say(t *testing.T, h host.Host, n *peer.Node, frame []byte) []byte {
	t.Helper()
	return sayTo(t, h, n, peer.SyncProtocol, frame)
}

func sayTo(t *testing.T, h host.Host, n *peer.Node, p protocol.ID, frame []byte) []byte {
	t.Helper()
	s, err := h.NewStream(t.Context(), n.ID(), p)
	must(t, err)
	defer s.Reset()
	must(t, s.SetDeadline(time.Now().Add(time.Minute)))
	_, err = s.Write(frame)
	_ = s.CloseWrite() // the stream may be reset by now; then the read says so
	answer, failed := io.ReadAll(s)
	if err = cmp.Or(err, failed); err != nil && !errors.Is(err, network.ErrReset) {
		t.Fatal(err)
	}
	return answer
}

func hello(ns dbadapter.NamespaceID) *wire.Hello {
	return &wire.Hello{Version: wire.Version, Mapping: rateless.MappingVersion, Namespace: ns}
}

func TestStrangerLearnsNothing(t *testing.T) {
	n := open(t, peer.Config{})
	ns := create(t, n, peer.Policy{})
	put(t, ns, "secret", "value")
	stranger := rawHost(t)
	dialNode(t, stranger, n)

	here := say(t, stranger, n, wire.Append(nil, hello(ns.ID())))
	nowhere := say(t, stranger, n, wire.Append(nil, hello(dbadapter.NamespaceID{1, 2, 3})))
	want := wire.Append(nil, &wire.Refuse{Code: wire.CodeDenied, Version: wire.Version})
	if !bytes.Equal(here, want) || !bytes.Equal(nowhere, want) {
		t.Errorf("a stranger got %x, and for a namespace that is not there %x; want %x", here, nowhere, want)
	}

	another := func(id dbadapter.NamespaceID) []byte {
		old := hello(id)
		old.Version = wire.Version + 1
		return say(t, stranger, n, wire.Append(nil, old))
	}
	here, nowhere = another(ns.ID()), another(dbadapter.NamespaceID{1, 2, 3})
	m, _, err := wire.Read(bytes.NewReader(here))
	if r, ok := m.(*wire.Refuse); err != nil || !ok || r.Code != wire.CodeVersion || r.Version != wire.Version || !bytes.Equal(here, nowhere) {
		t.Errorf("another version got %x, %v, and for a namespace that is not there %x", here, err, nowhere)
	}
	for name, frame := range map[string][]byte{
		"rubbish":         []byte("GET / HTTP/1.1\r\n\r\n"),
		"a huge length":   {0xff, 0xff, 0xff, 0x07},
		"not a hello":     wire.Append(nil, &wire.More{Cells: 7}),
		"half a hello":    wire.Append(nil, hello(ns.ID()))[:20],
		"nothing":         nil,
		"a vast hello":    {0x80, 0x80, 0x20, 0x01},
		"a length, alone": {0x10},
	} {
		got := say(t, stranger, n, frame)
		if len(got) > 0 {
			m, _, err := wire.Read(bytes.NewReader(got))
			if r, ok := m.(*wire.Refuse); err != nil || !ok || r.Code != wire.CodeProtocol {
				t.Errorf("%s got %x", name, got)
			}
		}
	}
}

func TestMemberWithoutSecretIsDenied(t *testing.T) {
	n := open(t, peer.Config{})
	ns := create(t, n, peer.Policy{})
	put(t, ns, "secret", "value")
	h := rawHost(t)
	dialNode(t, h, n)
	// On the list, but with a proof made without the secret.
	must(t, ns.SetRole(t.Context(), h.ID(), peer.RoleRead))
	got := say(t, h, n, wire.Append(nil, hello(ns.ID())))
	m, size, err := wire.Read(bytes.NewReader(got))
	if r, ok := m.(*wire.Refuse); err != nil || !ok || r.Code != wire.CodeDenied || size != len(got) {
		t.Errorf("got %x: %+v, %v", got, m, err)
	}
}

func TestInitiatorTellsNoStranger(t *testing.T) {
	n := open(t, peer.Config{})
	ns := create(t, n, peer.Policy{})
	put(t, ns, "secret", "value")
	h := rawHost(t)
	asked := make(chan struct{}, 1)
	h.SetStreamHandler(peer.SyncProtocol, func(s network.Stream) { asked <- struct{}{}; s.Reset() })
	dialNode(t, h, n)
	_, err := ns.Sync(t.Context(), h.ID(), peer.SyncOptions{})
	if !errors.Is(err, peer.ErrDenied) || !strings.Contains(err.Error(), "this node does not list it") || strings.Contains(err.Error(), "that node does not list") {
		t.Errorf("sync with a stranger: %v", err)
	}
	select {
	case <-asked:
		t.Error("a stranger was sent a stream")
	default:
	}
}

func TestPeerDown(t *testing.T) {
	t.Parallel()
	na, nb, sa, _ := pair(t, peer.Config{}, peer.Config{}, peer.Policy{})
	shut(t, nb)
	if _, err := sa.Sync(t.Context(), nb.ID(), peer.SyncOptions{}); !errors.Is(err, peer.ErrUnreachable) {
		t.Errorf("sync with a peer that is down: %v", err)
	}
	for _, addr := range []string{
		"/ip4/127.0.0.1/tcp/1/p2p/" + nb.ID().String(),
	} {
		if _, err := na.Connect(t.Context(), addr); !errors.Is(err, peer.ErrUnreachable) {
			t.Errorf("connect to %s: %v", addr, err)
		}
	}
	for _, addr := range []string{"", "nonsense", "/ip4/127.0.0.1/tcp/1", "/p2p/" + nb.ID().String()} {
		if _, err := na.Connect(t.Context(), addr); err == nil {
			t.Errorf("address %q was taken", addr)
		}
	}
	if _, err := na.Connect(t.Context(), na.Addrs()[0]); !errors.Is(err, peer.ErrUnreachable) {
		t.Errorf("connect to itself: %v", err)
	}
}

// A peer that is back is reached at once, however often it was tried in vain.
func TestPeerIsBack(t *testing.T) {
	t.Parallel()
	b := peer.Config{Dir: t.TempDir()}
	na, nb, sa, _ := pair(t, peer.Config{}, b, peer.Policy{})
	put(t, sa, "k", "v")
	addr, _, _ := strings.Cut(nb.Addrs()[0], "/p2p/")
	shut(t, nb)
	eventually(t, "the connection is gone", func() bool { return !na.Peers()[0].Connected })
	for range 2 {
		if _, err := sa.Sync(t.Context(), nb.ID(), peer.SyncOptions{}); !errors.Is(err, peer.ErrUnreachable) {
			t.Errorf("sync with a peer that is down: %v", err)
		}
	}
	b.ListenAddrs = []string{addr}
	sb, err := open(t, b).Namespace("notes")
	must(t, err)
	sync1(t, sa, nb.ID())
	equal(t, sa, sb)
}

// cut waits until the node ends a stream by its own deadline, without a word.
func cut(t *testing.T, s network.Stream) {
	t.Helper()
	must(t, s.SetReadDeadline(time.Now().Add(5*time.Minute)))
	if got, err := io.ReadAll(s); err == nil || len(got) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %x, %v", got, err)
	}
}

// A peer that stalls is cut by the deadline, whichever side it is on.
func TestStalledPeerIsCut(t *testing.T) {
	quick := peer.Limits{IdleTimeout: 50 * time.Millisecond}
	n := open(t, peer.Config{Limits: quick})
	ns := create(t, n, peer.Policy{})
	h := rawHost(t)
	dialNode(t, h, n)
	must(t, ns.SetRole(t.Context(), h.ID(), peer.RoleWrite))
	t.Run("in its first message", func(t *testing.T) {
		s, err := h.NewStream(t.Context(), n.ID(), peer.SyncProtocol)
		must(t, err)
		defer s.Reset()
		must(t, errOf(s.Write(wire.Append(nil, hello(ns.ID()))[:10])))
		cut(t, s)
	})
	t.Run("in a ticket", func(t *testing.T) {
		s, err := h.NewStream(t.Context(), n.ID(), peer.JoinProtocol)
		must(t, err)
		defer s.Reset()
		must(t, errOf(s.Write([]byte{100, 1, 2})))
		cut(t, s)
	})
	t.Run("asked for a sync", func(t *testing.T) {
		release := make(chan struct{})
		h.SetStreamHandler(peer.SyncProtocol, func(s network.Stream) { <-release; s.Reset() })
		defer close(release)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if _, err := ns.Sync(ctx, h.ID(), peer.SyncOptions{}); !errors.Is(err, peer.ErrUnreachable) || ctx.Err() != nil {
			t.Errorf("sync with a silent peer: %v", err)
		}
	})
}
