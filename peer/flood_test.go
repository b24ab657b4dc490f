package peer_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/loglimit"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// lines collects log records, each as one line.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) logger(least slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: least}))
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(b))
	return len(b), nil
}

func (l *lines) with(part string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// counter adds up the counters of a name with a label.
func counter(t *testing.T, registry *prometheus.Registry, name, label string) (sum float64) {
	t.Helper()
	found := false
	families, err := registry.Gather()
	must(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == name && (label == "" || l.GetValue() == label) {
					sum, found = sum+m.GetCounter().GetValue(), true
					break
				}
			}
		}
	}
	if !found {
		t.Fatalf("no counter %s{%s}", name, label)
	}
	return sum
}

// TestRefusalsAreCounted: each refusal moves one counter by one, and a thousand
// of a stranger, or of a member, write little into the log.
func TestRefusalsAreCounted(t *testing.T) {
	var log lines
	clock := newTestClock()
	registry := prometheus.NewRegistry()
	logger := slog.New(slog.NewTextHandler(&log, nil))
	n := open(t, peer.Config{Logger: logger, Registerer: registry, Clock: clock.now})
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
			sum += counter(t, registry, name, "")
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
			label := func() float64 {
				families, err := registry.Gather()
				must(t, err)
				sum := 0.0
				for _, f := range families {
					for _, m := range f.GetMetric() {
						for _, l := range m.GetLabel() {
							if f.GetName() == test.metric && l.GetValue() == test.label {
								sum += m.GetCounter().GetValue()
							}
						}
					}
				}
				return sum
			}
			before, of := all(), label()
			sayTo(t, h, n, test.protocol, test.frame)
			eventually(t, name+" is counted", func() bool { return label() == of+1 })
			if now := all(); now != before+1 {
				t.Errorf("%s, by a member %v: the counters move by %v", name, member, now-before)
			}
		}
		log.mu.Lock()
		log.all = nil
		log.mu.Unlock()
		for range 1000 {
			sayTo(t, h, n, peer.SyncProtocol, wire.Append(nil, strange))
		}
		log.mu.Lock()
		defer log.mu.Unlock()
		size := 0
		for _, line := range log.all {
			size += len(line)
		}
		if size > 20<<10 || len(log.all) > loglimit.Burst {
			t.Errorf("1,000 refusals, of a member %v, write %d bytes, %d lines", member, size, len(log.all))
		}
	}
	as(false)
	must(t, ns.SetRole(t.Context(), h.ID(), peer.RoleRead))
	as(true)
}

// A stranger that asks many times is counted each time, and leaves a few lines in
// the log: of each cause the first ones, and then one in a while.
func TestStrangerDoesNotFloodTheLog(t *testing.T) {
	var log lines
	registry := prometheus.NewRegistry()
	n := open(t, peer.Config{Logger: log.logger(slog.LevelInfo), Registerer: registry})
	stranger := rawHost(t)
	dialNode(t, stranger, n)
	const times = 100
	old := hello(dbadapter.NamespaceID{1})
	old.Version = wire.Version + 1
	begun := time.Now()
	for range times {
		say(t, stranger, n, wire.Append(nil, hello(dbadapter.NamespaceID{1})))
		say(t, stranger, n, wire.Append(nil, old))
		say(t, stranger, n, []byte("GET / HTTP/1.1\r\n\r\n"))
	}
	if denied := counter(t, registry, "syncd_refusals_total", "denied"); denied != times {
		t.Errorf("%v denials are counted, want %d", denied, times)
	}
	took := time.Since(begun)
	most := 3 * (loglimit.Burst + 1 + int(took/loglimit.Pause)) // of three causes
	if got := log.with(stranger.ID().String()); got == 0 || got > most {
		t.Errorf("%d lines about a stranger that asked %d times in %s, want at most %d", got, 3*times, took, most)
	}
}

// A sync that a node puts off counts as busy there, and not only at the peer
// that asked for it.
func TestBusyIsCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	na, _, sa, sb := pair(t, peer.Config{Limits: peer.Limits{SessionsPerPeer: 1}, Registerer: registry}, peer.Config{}, peer.Policy{})
	put(t, sa, "a", "1")
	put(t, sb, "b", "1") // a node that is empty puts off a second sync with a peer itself
	inside, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(release)
	wg.Go(func() {
		var once sync.Once
		_, err := sb.Sync(t.Context(), na.ID(), peer.SyncOptions{Progress: func(r reconcile.Report) {
			if r.WireBytesReceived > 0 {
				once.Do(func() { close(inside); <-release })
			}
		}})
		if err != nil {
			t.Errorf("the first sync: %v", err)
		}
	})
	<-inside
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wg.Go(func() { sb.Sync(ctx, na.ID(), peer.SyncOptions{}) })
	eventually(t, "the node that put a sync off has counted it", func() bool {
		return counter(t, registry, "syncd_refusals_total", "busy") > 0
	})
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
	var log lines
	na, nb, sa, sb := pair(t, peer.Config{Logger: log.logger(slog.LevelDebug)}, peer.Config{}, peer.Policy{})
	sync1(t, sb, na.ID())
	must(t, sa.SetRole(t.Context(), nb.ID(), peer.RoleAdmin))
	sync1(t, sb, na.ID())
	differ := reconcile.ErrListsDiffer.Error()
	eventually(t, "the side that was called has its line in the log", func() bool { return log.with(differ) > 0 })
	shut(t, na) // waits until all have theirs
	if all, debug := log.with(differ), log.with("level=DEBUG msg=sync ns="); log.with("level=WARN") != 0 || all > debug {
		t.Errorf("%d lines, %d at DEBUG: %q", all, debug, log.all)
	}
}
