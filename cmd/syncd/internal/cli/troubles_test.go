package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
)

func TestMembershipTroubles(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if got := membershipTroubles(&api.Namespace{}); len(got) != 0 {
		t.Errorf("of a member in good order: %q", got)
	}
	got := membershipTroubles(&api.Namespace{
		Removed: &api.Removal{By: "A", At: at, Expired: true},
		Twinned: &api.Twinned{By: "B", At: at},
		Twins:   []api.Twin{{ID: "C", Heard: []time.Time{at.Add(time.Minute), at}}},
	})
	for i, want := range []string{
		"this node was removed from the list of members by A at 2026-03-01T12:00:00Z: its role was given for a time; ",
		"another node runs with this one's identity, as B found at 2026-03-01T12:00:00Z: ",
		"two nodes run with the identity of C, heard at 12:01:00 and 12:00:00: ",
	} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}

// A role that has ended by its time says so, before an admin's node has written it down.
func TestMarksOfMembers(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for want, m := range map[string]api.Member{
		"":                   {Expires: at.Add(time.Second)},
		"expired":            {Expires: at},
		"this node, lapsed":  {Self: true, Lapsed: true},
		"this node, expired": {Self: true, Expires: at.Add(-time.Second)},
	} {
		if got := strings.Join(marks(&m, at), ", "); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}

func TestClockOff(t *testing.T) {
	for want, c := range map[string]api.Clock{
		"1m30s ahead of that of the peer: set the one that is wrong": {Offset: 90, Peers: 1},
		"2.5s behind those of 3 peers (their median): set it":        {Offset: -2.5, Peers: 3},
	} {
		if got := clockOff(&c); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}
