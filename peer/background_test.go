package peer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/peer/status"
)

// A member that falls silent within a sync does not delay the others.
func TestSilentMemberHoldsUpNobody(t *testing.T) {
	t.Parallel()
	a := openForTest(t, Config{SyncInterval: 5 * time.Millisecond, Limits: Limits{IdleTimeout: time.Hour}})
	silent, other := openForTest(t, Config{}), openForTest(t, Config{})
	inside, release := make(chan struct{}, 1), make(chan struct{})
	defer close(release)
	silent.host.SetStreamHandler(SyncProtocol, func(s network.Stream) {
		inside <- struct{}{}
		<-release
		s.Reset()
	})
	sa := createForTest(t, a, Policy{})
	joinForTest(t, sa, silent, RoleWrite)
	<-inside
	so := joinForTest(t, sa, other, RoleWrite)
	must(t, errOf(sa.Put(t.Context(), []byte("k"), nil)))
	eventually(t, "the other member has the record", func() bool { return so.Info().Digest == sa.Info().Digest })
}

// A namespace that a peer has dropped does not keep their other namespaces from
// being synced.
func TestDroppedNamespaceStarvesNone(t *testing.T) {
	a, b := openForTest(t, Config{SyncInterval: 5 * time.Millisecond}), openForTest(t, Config{})
	var here, there [2]*Namespace
	for i, name := range []string{"first", "second"} {
		var err error
		there[i], err = b.CreateNamespace(t.Context(), name, Policy{})
		must(t, err)
		here[i] = joinForTest(t, there[i], a, RoleWrite)
	}
	must(t, b.ForceDrop(t.Context(), "first"))
	failed := func() (n int) {
		for _, s := range a.RecentSyncs() {
			if s.Report.Namespace == "first" && s.Error != "" {
				n++
			}
		}
		return n
	}
	eventually(t, "the first namespace fails, again and again", func() bool { return failed() > 2 })
	must(t, errOf(here[1].Put(t.Context(), []byte("k"), nil)))
	eventually(t, "the second namespace is synced", func() bool { return here[1].Info().Digest == there[1].Info().Digest })
}

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
