package peer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/peer/status"
)

// However many strangers are about to say something, a member gets its turn.
func TestCrowdOfStrangersKeepsNoMemberOut(t *testing.T) {
	a, b := openForTest(t, Config{}), openForTest(t, Config{})
	sa := createForTest(t, a, Policy{})
	sb := joinForTest(t, sa, b, RoleWrite)
	eventually(t, "the join has ended at its responder, too", func() bool { return allLeft(a.core.Sessions, node.ID(b.self.id)) })
	var leave []func()
	for i := 0; ; i++ {
		stranger := node.ID(fmt.Sprint(i))
		done, ok := a.core.Sessions.Greet(stranger, a.core.IsMember(stranger))
		if !ok {
			break
		}
		leave = append(leave, done)
	}
	if len(leave) != greetings {
		t.Errorf("%d strangers were let in", len(leave))
	}
	if r, err := sb.Sync(t.Context(), a.ID(), SyncOptions{}); err != nil || !r.Verified {
		t.Errorf("a member's sync: %+v, %v", r, err)
	}
	// A node that wants to join is a stranger, and must wait.
	c := openForTest(t, Config{})
	ticket, err := sa.Invite(t.Context(), InviteOptions{})
	must(t, err)
	if _, err := c.Join(t.Context(), ticket); !errors.Is(err, ErrUnreachable) {
		t.Errorf("a stranger too many: %v", err)
	}
	for _, done := range leave {
		done()
	}
	if _, err := c.Join(t.Context(), ticket); err != nil {
		t.Errorf("after the crowd: %v", err)
	}
	eventually(t, "all have left", func() bool { return allLeft(a.core.Sessions, node.ID(b.self.id), node.ID(c.self.id)) })
}

// allLeft reports whether no stream holds a place for its greeting: all are to
// be had, and each peer can have its share.
func allLeft(s *syncing.Sessions, peers ...node.ID) bool {
	var leave []func()
	defer func() {
		for _, done := range leave {
			done()
		}
	}()
	free := true
	take := func(id node.ID, member bool) {
		done, ok := s.Greet(id, member)
		if free = free && ok; ok {
			leave = append(leave, done)
		}
	}
	share := Limits{}.withDefaults().SessionsPerPeer
	for _, member := range []bool{true, false} {
		for i := range greetings {
			id := node.ID(fmt.Sprint(i))
			if i/share < len(peers) {
				id = peers[i/share]
			}
			take(id, member)
		}
		for _, done := range leave {
			done()
		}
		leave = nil
	}
	return free
}

// Of two nodes that begin the same sync, the one with the higher id waits for
// the other; a dry run does not wait.
func TestHigherIDWaits(t *testing.T) {
	a, b := openForTest(t, Config{}), openForTest(t, Config{})
	if a.self.id > b.self.id {
		a, b = b, a
	}
	sa := createForTest(t, a, Policy{})
	sb := joinForTest(t, sa, b, RoleWrite)
	done := sa.shards()[0].set.Call(node.ID(b.self.id), syncing.Ask{})
	if _, err := sb.Diff(t.Context(), a.self.id, SyncOptions{}); err != nil {
		t.Errorf("a dry run: %v", err)
	}
	ended := make(chan error, 1)
	go func() { _, err := sb.Sync(t.Context(), a.self.id, SyncOptions{}); ended <- err }()
	eventually(t, "the sync is put off", func() bool {
		return slices.ContainsFunc(b.RecentSyncs(), func(s status.Sync) bool { return strings.Contains(s.Error, "busy") })
	})
	done()
	if err := <-ended; err != nil {
		t.Errorf("once the other is over: %v", err)
	}
}

// A bound narrows the syncs at once so that each keeps its share, and is refused where
// it leaves none.
func TestBandwidthNarrows(t *testing.T) {
	for want, b := range map[[3]int]Bandwidth{
		{16, 4, 16}: {},
		{1, 4, 1}:   {Send: MinBandwidth},
		{3, 4, 3}:   {Send: 1 << 30, Receive: 3*MinBandwidth + 1},
		{16, 2, 2}:  {PeerSend: 2 * MinBandwidth},
		{8, 1, 1}:   {Send: 8 * MinBandwidth, PeerReceive: MinBandwidth},
	} {
		c := Config{Bandwidth: b}
		l := c.limits()
		if got := [3]int{l.Sessions, l.SessionsPerPeer, b.ownPerPeer(l)}; got != want {
			t.Errorf("%+v: %v; want %v", b, got, want)
		}
	}
	for _, b := range []Bandwidth{{Send: -1}, {PeerReceive: MinBandwidth - 1}} {
		if _, err := Open(t.Context(), Config{Bandwidth: b}); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", b, err)
		}
	}
}
