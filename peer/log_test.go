package peer

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/internal/loglimit"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
)

// TestFailedSyncsLog: a thousand failed syncs with one member are few lines.
func TestFailedSyncsLog(t *testing.T) {
	var log Log
	n := openForTest(t, Config{Logger: log.Logger(slog.LevelWarn)})
	remote := "member"
	for range 1000 {
		s := status.Sync{Incoming: true, Report: reconcile.Report{Namespace: "notes", Peer: remote}}
		n.ended(s, &side{ask: syncing.Ask{Control: true}, incoming: true}, errors.New("out of turn"))
	}
	if text := log.String(); strings.Count(text, "out of turn") < loglimit.Burst || len(text) > 20<<10 {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}
