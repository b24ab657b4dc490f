package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/reconcile"
)

// TestSyncStops: when the daemon ends within a sync, the remaining members are
// not asked for one by one.
func TestSyncStops(t *testing.T) {
	syncs := 0
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/ns/notes/status", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(api.NamespaceStatus{MemberList: []api.Member{{ID: "one"}, {ID: "two"}, {ID: "three"}}})
	})
	mux.HandleFunc("POST /v1/sync", func(w http.ResponseWriter, _ *http.Request) {
		syncs++
		p := problem.From(peer.ErrClosed)
		w.WriteHeader(p.Status)
		json.NewEncoder(w).Encode(p)
	})
	exit, said := syncAgainst(t, mux)
	if syncs != 1 || exit != problem.ExitTryAgain || !strings.Contains(said, "2 syncs were not begun") {
		t.Errorf("%d syncs were begun, exit code %d; want 1 and %d:\n%s", syncs, exit, problem.ExitTryAgain, said)
	}
}

// TestSyncExit: the exit code of several syncs is the highest, in whatever
// order they end.
func TestSyncExit(t *testing.T) {
	for _, answers := range [][]error{
		{problem.ErrDiffers, peer.ErrUnreachable, nil},
		{nil, peer.ErrUnreachable, problem.ErrDiffers},
		{errors.New("some other error"), problem.ErrDiffers, peer.ErrUnreachable},
	} {
		daemon := http.NewServeMux()
		daemon.HandleFunc("GET /v1/ns/notes/status", func(w http.ResponseWriter, _ *http.Request) {
			json.NewEncoder(w).Encode(api.NamespaceStatus{MemberList: []api.Member{{ID: "one"}, {ID: "two"}, {ID: "three"}}})
		})
		daemon.HandleFunc("POST /v1/sync", func(w http.ResponseWriter, _ *http.Request) {
			err := answers[0]
			answers = answers[1:]
			if err == nil {
				json.NewEncoder(w).Encode(api.Report{Report: reconcile.Report{Verified: true}})
				return
			}
			p := problem.From(err)
			w.WriteHeader(p.Status)
			json.NewEncoder(w).Encode(p)
		})
		order := fmt.Sprint(answers)
		exit, said := syncAgainst(t, daemon)
		if exit != problem.ExitDiffers || len(answers) > 0 {
			t.Errorf("%s: exit code %d, %d syncs were not begun; want %d:\n%s", order, exit, len(answers), problem.ExitDiffers, said)
		}
	}
}

// syncAgainst runs "syncd sync --ns notes" against a daemon that a handler plays.
func syncAgainst(t *testing.T, daemon http.Handler) (exit int, said string) {
	t.Helper()
	exit, _, said = against(t.Context(), t, nil, daemon, "sync", "--ns", "notes")
	return exit, said
}

// A sync with a member that shares no shard proves nothing of records, and says why.
func TestSyncLineWithoutSharedShards(t *testing.T) {
	line := syncLine(syncTarget{"packages", "x"}, api.Report{Report: reconcile.Report{MembersOnly: true}}, "both")
	if !strings.Contains(line, "no shard in common") || strings.Contains(line, "not verified") {
		t.Error(line)
	}
}
