package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/peer/status"
)

func TestMembershipTroubles(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if got := membershipTroubles(&api.Namespace{}); len(got) != 0 {
		t.Errorf("of a member in good order: %q", got)
	}
	got := membershipTroubles(&api.Namespace{Namespace: status.Namespace{
		Removed: &status.Removal{By: "A", At: at, Expired: true},
		Twinned: &status.Twinned{By: "B", At: at},
		Twins:   []status.Twin{{ID: "C", Heard: []time.Time{at.Add(time.Minute), at}}},
		Damage:  &status.Damage{Found: []string{"read the file 7.sst", "read the file 8.sst"}, Findings: 3, At: at}, Name: "notes",
	}})
	for i, want := range []string{
		"this node was removed from the list of members by " + status.ID("A").String() + " at 2026-03-01T12:00:00Z: its role was given for a time; ",
		"another node runs with this one's identity, as " + status.ID("B").String() + " found at 2026-03-01T12:00:00Z: ",
		"the store is damaged, as was met 3 times since 2026-03-01T12:00:00Z: read the file 7.sst; ",
		"two nodes run with the identity of " + status.ID("C").String() + ", heard at 12:01:00 and 12:00:00: ",
	} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}

// A node that has no connection to a member says so, and where to look: after a restart
// under other addresses the members may not find one another, and all else looks well.
func TestLonelyNamespaces(t *testing.T) {
	away := status.Peer{Namespaces: []string{"notes"}}
	here := status.Peer{Namespaces: []string{"other", "notes"}, Connected: true}
	elsewhere := status.Peer{Namespaces: []string{"other"}, Connected: true}
	for name, c := range map[string]struct {
		ns    api.Namespace
		peers []status.Peer
		want  bool
	}{
		"alone":                {api.Namespace{Namespace: status.Namespace{Name: "notes", Role: "admin"}}, nil, false},
		"one is connected":     {api.Namespace{Namespace: status.Namespace{Name: "notes", Role: "admin"}}, []status.Peer{away, here}, false},
		"none is":              {api.Namespace{Namespace: status.Namespace{Name: "notes", Role: "read"}}, []status.Peer{away, away}, true},
		"one of another is":    {api.Namespace{Namespace: status.Namespace{Name: "notes", Role: "write"}}, []status.Peer{elsewhere, away}, true},
		"this one was removed": {api.Namespace{Namespace: status.Namespace{Name: "notes", Role: "none"}}, []status.Peer{away}, false},
	} {
		got := lonely(&c.ns, c.peers)
		if c.want != (len(got) == 1) || c.want && !strings.Contains(got[0], "syncd peer ls") {
			t.Errorf("%s: %q", name, got)
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
