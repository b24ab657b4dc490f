package peer_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/peer"
)

// signed is a record that a node signs with its own key, whatever its version.
func signed(t *testing.T, n *peer.Node, ns *peer.Namespace, r dbadapter.Record) dbadapter.Record {
	t.Helper()
	signature, err := n.Key().Sign(node.SignedBytes(ns.ID(), &r))
	must(t, err)
	r.Signature = signature
	return r
}

// removed is a namespace of a, with the writer b, which a has removed at the clock's
// time, and c, which has not heard of that; each knows where the others are.
func removed(t *testing.T, friend peer.Role) (clock *testClock, n [3]*peer.Node, s [3]*peer.Namespace) {
	t.Helper()
	clock = newTestClock()
	for i := range n {
		n[i] = open(t, peer.Config{Clock: clock.now})
	}
	s[0] = create(t, n[0], peer.Policy{})
	s[1], s[2] = join(t, s[0], n[1], peer.RoleWrite), join(t, s[0], n[2], friend)
	must(t, errOf(n[1].AddPeer(t.Context(), n[2].Addrs()[0])))
	put(t, s[0], "common", "1")
	sync1(t, s[1], n[0].ID())
	sync1(t, s[2], n[0].ID())
	clock.turn(time.Minute)
	must(t, s[0].Remove(t.Context(), n[1].ID()))
	clock.turn(time.Minute)
	return clock, n, s
}

// A removed member's old tickets admit neither itself nor others.
func TestRemovedMembersTickets(t *testing.T) {
	na, nb, nc, nd := open(t, peer.Config{}), open(t, peer.Config{}), open(t, peer.Config{}), open(t, peer.Config{})
	sa := create(t, na, peer.Policy{})
	used := invite(t, sa, peer.InviteOptions{Role: peer.RoleAdmin, Uses: 3})
	sb, err := nb.Join(t.Context(), used)
	must(t, err)
	sc := join(t, sa, nc, peer.RoleAdmin)
	sync1(t, sc, na.ID())
	ofC := invite(t, sc, peer.InviteOptions{})
	ofB := invite(t, sb, peer.InviteOptions{Role: peer.RoleAdmin})
	put(t, sa, "k", "before")
	sync1(t, sb, na.ID())
	must(t, sa.Remove(t.Context(), nb.ID()))
	put(t, sa, "k", "after")
	sync1(t, sc, na.ID())
	for name, ticket := range map[string]string{"the one it came by": used, "one that was never used": ofC} {
		if _, err := nb.Join(t.Context(), ticket); !errors.Is(err, peer.ErrDenied) || !strings.Contains(err.Error(), "removed") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// It has not heard, and redeems a ticket of its own: the newcomer gets what it has,
	// and is a member in its eyes alone.
	sd, report, err := nd.JoinSync(t.Context(), ofB, peer.SyncOptions{})
	if err != nil || report.Applied != 1 {
		t.Fatalf("joining at the removed admin: %+v, %v", report, err)
	}
	if _, err := sd.Sync(t.Context(), na.ID(), peer.SyncOptions{}); !errors.Is(err, peer.ErrDenied) {
		t.Errorf("the newcomer at another member: %v", err)
	}
	if rec, err := sd.Get(t.Context(), []byte("k")); err != nil || string(rec.Value) != "before" {
		t.Errorf("the newcomer holds %q, %v", rec.Value, err)
	}
	for _, ns := range []*peer.Namespace{sa, sc} {
		if got := len(ns.Members()); got != 2 {
			t.Errorf("%d members: %+v", got, ns.Members())
		}
	}
}

// A removed member that runs a modified program dates its writes back, and a friend
// that has not heard carries them: what looks older than the removal is taken, and
// wins over nothing that is later. What is dated after the removal is not.
func TestRemovedMemberDatesBack(t *testing.T) {
	clock, n, s := removed(t, peer.RoleRead)
	removal := s[0].Former()[0].At
	version := func(at time.Time) dbadapter.Version {
		return dbadapter.Version{Clock: dbadapter.TimestampAt(at), Writer: n[1].Writer(), Incarnation: 7}
	}
	common, err := s[0].Get(t.Context(), []byte("common"))
	must(t, err)
	err = s[1].Force(t.Context(),
		signed(t, n[1], s[1], dbadapter.Record{Key: []byte("dated back"), Value: []byte("b"), Version: version(removal.Add(-time.Second))}),
		signed(t, n[1], s[1], dbadapter.Record{Key: []byte("common"), Value: []byte("b"), Version: version(common.Version.Clock.Time().Add(-time.Second))}),
		signed(t, n[1], s[1], dbadapter.Record{Key: []byte("late"), Value: []byte("b"), Version: version(clock.now())}))
	must(t, err)
	if _, err := s[2].Sync(t.Context(), n[1].ID(), peer.SyncOptions{}); err == nil { // no address yet: b calls
		t.Log("c has called b")
	} else if _, err := s[1].Sync(t.Context(), n[2].ID(), peer.SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s[2].Sync(t.Context(), n[0].ID(), peer.SyncOptions{}); !errors.Is(err, peer.ErrRejected) {
		t.Errorf("the friend brings them: %v", err)
	}
	must(t, errOf(s[2].Collect(t.Context())))
	sync1(t, s[2], n[0].ID())
	equal(t, s[0], s[2])
	for key, want := range map[string]string{"dated back": "b", "common": "1", "late": ""} {
		if rec, err := s[0].Get(t.Context(), []byte(key)); string(rec.Value) != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q, %v; want %q", key, rec.Value, err, want)
		}
	}
	// The friend may not write: it has set aside what it took too late, and lists it.
	if got := s[2].Info().SetAside; got != 1 {
		t.Errorf("the friend has set %d records aside", got)
	}
	// Nor does the friend serve it any more.
	if _, err := s[1].Sync(t.Context(), n[2].ID(), peer.SyncOptions{}); !errors.Is(err, peer.ErrRemoved) {
		t.Errorf("the removed member at its friend: %v", err)
	}
}

// A friend that may write, and has not heard, takes what a removed member writes, and
// stands for it once it has heard: nothing that was acknowledged is lost.
func TestStaleFriendOfARemovedMember(t *testing.T) {
	_, n, s := removed(t, peer.RoleWrite)
	put(t, s[1], "late", "of b") // it has not heard
	must(t, errOf(s[1].Sync(t.Context(), n[2].ID(), peer.SyncOptions{})))
	if rec, err := s[2].Get(t.Context(), []byte("late")); err != nil || rec.Version.Writer != n[1].Writer() {
		t.Errorf("the friend holds %+v, %v", rec, err)
	}
	if _, err := s[2].Sync(t.Context(), n[0].ID(), peer.SyncOptions{}); !errors.Is(err, peer.ErrRejected) {
		t.Errorf("the friend brings it: %v", err)
	}
	if swept, err := s[2].Collect(t.Context()); err != nil || swept.Adopted != 1 {
		t.Errorf("swept %+v, %v", swept, err)
	}
	sync1(t, s[2], n[0].ID())
	equal(t, s[0], s[2])
	if rec, err := s[0].Get(t.Context(), []byte("late")); err != nil || string(rec.Value) != "of b" || rec.Version.Writer != n[2].Writer() {
		t.Errorf("the others hold %+v, %v", rec, err)
	}
	if _, err := s[1].Sync(t.Context(), n[2].ID(), peer.SyncOptions{}); !errors.Is(err, peer.ErrRemoved) {
		t.Errorf("the removed member at its friend: %v", err)
	}
	if _, err := s[1].Put(t.Context(), []byte("later"), nil); !errors.Is(err, peer.ErrRemoved) {
		t.Errorf("it has heard, and writes: %v", err)
	}
}

// Once the members have collected beyond the removal, what a removed member dates
// back is refused, even where a member brings it on purpose.
func TestDatedBackBelowTheFloor(t *testing.T) {
	clock, n, s := removed(t, peer.RoleWrite)
	back := signed(t, n[1], s[1], dbadapter.Record{Key: []byte("dated back"), Value: []byte("b"), Version: dbadapter.Version{
		Clock: dbadapter.TimestampAt(s[0].Former()[0].At.Add(-time.Second)), Writer: n[1].Writer(), Incarnation: 7,
	}})
	put(t, s[0], "gone", "1")
	must(t, errOf(s[0].Delete(t.Context(), []byte("gone"))))
	for range 8 {
		clock.turn(time.Minute)
		for i := range 3 {
			must(t, errOf(s[2*(i%2)].Sync(t.Context(), n[2-2*(i%2)].ID(), peer.SyncOptions{})))
		}
		for _, ns := range []*peer.Namespace{s[0], s[2]} {
			must(t, errOf(ns.Collect(t.Context())))
		}
	}
	if floor := s[0].Collection().Floor; floor.Before(s[0].Former()[0].At) {
		t.Fatalf("the floor is %s, the removal was at %s", floor, s[0].Former()[0].At)
	}
	must(t, s[2].Force(t.Context(), back))
	sync1(t, s[2], n[0].ID())
	if got := s[2].Info().SetAside; got != 1 {
		t.Errorf("where it was brought from, %d records are set aside", got)
	}
	if _, err := s[0].Get(t.Context(), []byte("dated back")); !errors.Is(err, peer.ErrNotFound) {
		t.Errorf("it is in: %v", err)
	}
}
