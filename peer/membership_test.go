package peer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/multiformats/go-varint"

	"github.com/syncd-io/syncd/peer"
)

// A member of one namespace is a stranger to another of the same node, though
// it knows that one's secret: each namespace goes by its own list.
func TestMemberOfAnotherNamespaceIsDenied(t *testing.T) {
	clock := newTestClock()
	cfg := peer.Config{Clock: clock.now}
	na, nb, nc := open(t, cfg), open(t, cfg), open(t, cfg)
	sa := create(t, na, peer.Policy{})
	sb := join(t, sa, nb, peer.RoleWrite)
	sc := join(t, sa, nc, peer.RoleWrite)
	put(t, sb, "k", "of b")
	put(t, sc, "l", "of c")
	clock.turn(time.Second) // a write of the removal's millisecond could be after it
	must(t, sa.Remove(t.Context(), nc.ID()))
	sync1(t, sb, na.ID())
	other, err := nb.CreateNamespace(t.Context(), "other", peer.Policy{})
	must(t, err)
	must(t, errOf(nc.Join(t.Context(), invite(t, other, peer.InviteOptions{Role: peer.RoleAdmin}))))
	for name, o := range map[string]peer.SyncOptions{"all of it": {}, "a prefix": {Prefix: []byte("k")}} {
		if r, err := sc.Sync(t.Context(), nb.ID(), o); !errors.Is(err, peer.ErrDenied) || r.Applied+r.Sent > 0 {
			t.Errorf("a sync of %s by a member of another namespace: %+v, %v", name, r, err)
		}
	}
	if c := contents(t, sc); len(c) != 0 || sc.Info().SetAside != 1 {
		t.Errorf("the other member holds %v, and has set %d aside", c, sc.Info().SetAside)
	}
	if b := contents(t, sb); len(b) != 1 {
		t.Errorf("the other member has written: %v", b)
	}
	// Once it is on the list again it is served.
	must(t, sa.SetRole(t.Context(), nc.ID(), peer.RoleWrite))
	sync1(t, sb, na.ID())
	sync1(t, sc, nb.ID())
	equal(t, sb, sc)
}

// A request to join may name a namespace, and show a token, of any length: what
// does not fit is refused in one and the same words, and the node serves on.
func TestJoinRequestsOfAnyLength(t *testing.T) {
	n := open(t, peer.Config{})
	ns := create(t, n, peer.Policy{})
	invite(t, ns, peer.InviteOptions{})
	id := ns.ID()
	stranger := rawHost(t)
	dialNode(t, stranger, n)
	for _, length := range []int{0, 1, 8, 15, 17, 32, 500} {
		for _, token := range []int{0, 1, 31, 32, 33, 500} {
			name := make([]byte, length)
			copy(name, id[:])
			body, err := cbor.Marshal(map[int]any{1: 1, 2: name, 3: make([]byte, token)})
			must(t, err)
			answer := sayTo(t, stranger, n, peer.JoinProtocol, append(varint.ToUvarint(uint64(len(body))), body...))
			if !strings.Contains(string(answer), "not known") {
				t.Errorf("a namespace of %d bytes and a token of %d: %q", length, token, answer)
			}
		}
	}
	if got := len(ns.Members()); got != 1 {
		t.Errorf("%d members", got)
	}
	join(t, ns, open(t, peer.Config{}), peer.RoleRead)
}

// Two members that have both moved find one another through a third.
func TestMovedMembersMeet(t *testing.T) {
	t.Parallel()
	config := func() peer.Config { return peer.Config{Dir: t.TempDir(), SyncInterval: 50 * time.Millisecond} }
	a, b, c := config(), config(), config()
	na, nb, nc := open(t, a), open(t, b), open(t, c)
	sa := create(t, na, peer.Policy{})
	sb, sc := join(t, sa, nb, peer.RoleWrite), join(t, sa, nc, peer.RoleWrite)
	at := func(of, n *peer.Node) bool { // of knows where n is now
		addrs, _ := addrsOf(of, n.ID())
		return slices.ContainsFunc(n.Addrs(), func(now string) bool {
			return slices.ContainsFunc(addrs, func(known string) bool { return strings.HasPrefix(now, known+"/") })
		})
	}
	eventually(t, "all list one another, and know where the third is", func() bool {
		return len(sa.Members()) == 3 && len(sb.Members()) == 3 && len(sc.Members()) == 3 && at(na, nc) && at(nb, nc)
	})
	shut(t, na)
	shut(t, nb)
	na, nb = open(t, a), open(t, b) // each on another port
	eventually(t, "the two that have moved know where the other is", func() bool { return at(na, nb) && at(nb, na) })
	put(t, notes(t, na), "k", "v")
	sync1(t, notes(t, nb), na.ID())
	equal(t, notes(t, na), notes(t, nb))
}
