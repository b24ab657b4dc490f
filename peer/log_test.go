package peer

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/internal/loglimit"
)

// TestFailedSyncsLog: a thousand failed syncs with one member are few lines.
func TestFailedSyncsLog(t *testing.T) {
	var log bytes.Buffer
	n := openForTest(t, Config{})
	n.log = limited(slog.New(slog.NewTextHandler(&log, nil)), loglimit.Options{})
	remote := "member"
	for range 1000 {
		s := SyncRecord{Incoming: true, Report: Report{Namespace: "notes", Peer: remote}}
		n.ended(s, &side{control: true, incoming: true}, errors.New("out of turn"))
	}
	if lines := strings.Count(log.String(), "\n"); lines < loglimit.Burst || log.Len() > 20<<10 || !strings.Contains(log.String(), "out of turn") {
		t.Errorf("%d lines, %d bytes: %s", lines, log.Len(), &log)
	}
}
