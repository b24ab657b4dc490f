package peer_test

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
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
