package peer_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	libp2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/loglimit"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/reconcile"
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

// TestRefusalsAreCounted: each refusal moves one counter by one, and a thousand
// of a stranger, or of a member, write little into the log.
func TestRefusalsAreCounted(t *testing.T) {
	var log peer.Log
	clock := newTestClock()
	registry := prometheus.NewRegistry()
	n := open(t, peer.Config{Logger: log.Logger(slog.LevelInfo), Registerer: registry, Clock: clock.now})
	ns := create(t, n, peer.Policy{})
	h := rawHost(t)
	dialNode(t, h, n)
	strange := hello(dbadapter.NamespaceID{1})
	old := hello(dbadapter.NamespaceID{1})
	old.Version = wire.Version + 1
	garbage := []byte{2, 99, 99}
	question := wire.Append(nil, &wire.Ask{Version: 2, Namespace: dbadapter.NamespaceID{1}, Question: &wire.AskStatus{}})
	all := func() (sum float64) {
		for _, name := range []string{"syncd_refusals_total", "syncd_questions_total", "syncd_syncs_total"} {
			sum += metricOf(t, registry, name, "")
		}
		return sum
	}
	as := func(member bool) {
		for name, test := range map[string]struct {
			protocol protocol.ID
			frame    []byte
			metric   string
			label    string
		}{
			"no such namespace":  {peer.SyncProtocol, wire.Append(nil, strange), "syncd_refusals_total", "denied"},
			"another version":    {peer.SyncProtocol, wire.Append(nil, old), "syncd_refusals_total", "version"},
			"malformed":          {peer.SyncProtocol, garbage, "syncd_refusals_total", "malformed"},
			"malformed question": {peer.AskProtocol, garbage, "syncd_refusals_total", "malformed"},
			"question":           {peer.AskProtocol, question, "syncd_questions_total", "status"},
			"wrong ticket":       {peer.JoinProtocol, append([]byte{40}, make([]byte, 40)...), "syncd_refusals_total", "join"},
		} {
			label := func() float64 { n, _ := gathered(t, registry, test.metric, test.label); return n }
			before, of := all(), label()
			sayTo(t, h, n, test.protocol, test.frame)
			eventually(t, name+" is counted", func() bool { return label() == of+1 })
			if now := all(); now != before+1 {
				t.Errorf("%s, by a member %v: the counters move by %v", name, member, now-before)
			}
		}
		log.Reset()
		for range 1000 {
			sayTo(t, h, n, peer.SyncProtocol, wire.Append(nil, strange))
		}
		if size, lines := len(log.String()), log.With(""); size > 20<<10 || lines > loglimit.Burst {
			t.Errorf("1,000 refusals, of a member %v, write %d bytes, %d lines", member, size, lines)
		}
	}
	as(false)
	must(t, ns.SetRole(t.Context(), h.ID(), peer.RoleRead))
	as(true)
}

// A first frame is read as soon as it is there, however short it is.
func TestShortFirstFrameIsAnsweredAtOnce(t *testing.T) {
	n := open(t, peer.Config{})
	h := rawHost(t)
	dialNode(t, h, n)
	// The last announces 81,921 bytes, one more than a first message may have.
	for _, frame := range [][]byte{{0}, {1, 1}, {1, 200}, {2, 1, wire.Version}, {0x81, 0x80, 0x05, 1}} {
		s, err := h.NewStream(t.Context(), n.ID(), peer.SyncProtocol)
		must(t, err)
		// The node resets a stream whose first message is 10 s late.
		must(t, s.SetDeadline(time.Now().Add(time.Minute)))
		// The stream stays open for writing: its end says nothing to the node.
		must(t, errOf(s.Write(frame)))
		got, err := io.ReadAll(s)
		m, size, failed := wire.Read(bytes.NewReader(got))
		if r, ok := m.(*wire.Refuse); err != nil || failed != nil || size != len(got) || !ok || r.Code != wire.CodeProtocol || !strings.HasPrefix(r.Text, "protocol violation: malformed") {
			t.Errorf("frame %x got %x, %v", frame, got, err)
		}
		s.Reset()
	}
}

// That the lists of members differ is found in ordinary operation, and mended in the
// same sync: the log does not call it a failure.
func TestListsThatDifferAreNoNews(t *testing.T) {
	var log peer.Log
	na, nb, sa, sb := pair(t, peer.Config{Logger: log.Logger(slog.LevelDebug)}, peer.Config{}, peer.Policy{})
	sync1(t, sb, na.ID())
	must(t, sa.SetRole(t.Context(), nb.ID(), peer.RoleAdmin))
	sync1(t, sb, na.ID())
	differ := reconcile.ErrListsDiffer.Error()
	eventually(t, "the side that was called has its line in the log", func() bool { return log.With(differ) > 0 })
	shut(t, na) // waits until all have theirs
	if all, debug := log.With(differ), log.With("level=DEBUG msg=sync ns="); log.With("level=WARN") != 0 || all > debug {
		t.Errorf("%d lines, %d at DEBUG: %s", all, debug, &log)
	}
}
