package peer

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/syncd-io/syncd/internal/loglimit"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
)

// lockedBuffer is a buffer that a node writes to while a test reads it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lockedBuffer) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Reset()
}

// TestFailedSyncsLog: a thousand failed syncs with one member are few lines.
func TestFailedSyncsLog(t *testing.T) {
	var log lockedBuffer
	n := openForTest(t, Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	remote := "member"
	for range 1000 {
		s := status.Sync{Incoming: true, Report: reconcile.Report{Namespace: "notes", Peer: remote}}
		n.ended(s, &side{control: true, incoming: true}, errors.New("out of turn"))
	}
	if text := log.String(); strings.Count(text, "out of turn") < loglimit.Burst || len(text) > 20<<10 {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}
