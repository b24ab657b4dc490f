package peer

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/syncd-io/syncd/internal/mesh"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/push"
)

// toAll gives the members to which a namespace pushes directly.
func toAll(ns *Namespace, l *push.Lines) (to []node.ID, whole bool) {
	audience, _ := ns.core.Audience()
	return ns.shards()[0].set.Pushes().Direct(new(push.Push), audience, l)
}

// directCluster is n members of a namespace that have lines to one another.
func directCluster(t *testing.T, n int) (nodes []*Node, spaces []*Namespace) {
	t.Helper()
	nodes, spaces = clusterForTest(t, Policy{}, slices.Repeat([]Config{{ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"}, SyncInterval: time.Hour}}, n)...)
	for i := range nodes {
		eventually(t, fmt.Sprintf("node %d has a line to each other one, and has heard of theirs", i), func() bool {
			l := nodes[i].mesh().Lines(spaces[i].shards()[0].set)
			for _, links := range l.Taking {
				if len(links) != n-1 {
					return false
				}
			}
			to, whole := toAll(spaces[i], l)
			return whole && len(to) == n-1
		})
	}
	return nodes, spaces
}

// Members of a small namespace come to have lines to one another, and lose the one to a
// member that is gone; then a push still goes directly to the others.
func TestLines(t *testing.T) {
	nodes, spaces := directCluster(t, 4)
	must(t, nodes[3].Close(t.Context()))
	for i := range 3 {
		eventually(t, "the others have lines to one another only", func() bool {
			to, whole := toAll(spaces[i], nodes[i].mesh().Lines(spaces[i].shards()[0].set))
			return whole && len(to) == 2
		})
	}
	must(t, errOf(spaces[0].Put(t.Context(), []byte("k"), []byte("v"))))
	for _, ns := range spaces[1:3] {
		eventually(t, "it holds what was pushed", func() bool { _, err := ns.Get(t.Context(), []byte("k")); return err == nil })
	}
}

// A namespace that is paused is taken no more, and again once it is resumed.
func TestPausedNamespacesAreNotTaken(t *testing.T) {
	nodes, spaces := directCluster(t, 2)
	taken := func() bool {
		_, takes := nodes[0].mesh().Lines(spaces[0].shards()[0].set).Taking[node.ID(nodes[1].ID())]
		return takes
	}
	must(t, spaces[1].Pause(t.Context()))
	eventually(t, "the other says that it takes no pushes", func() bool { return !taken() })
	must(t, spaces[1].Resume(t.Context()))
	eventually(t, "the other says that it takes pushes", taken)
}

// A member that takes no streams of direct pushes, and that the mesh reaches, gets pushes
// over the mesh.
func TestMembersWithoutStreams(t *testing.T) {
	nodes, spaces := directCluster(t, 3)
	id := node.ID(nodes[2].ID())
	lines := func(i int) *push.Lines { return nodes[i].mesh().Lines(spaces[i].shards()[0].set) }
	nodes[2].host.RemoveStreamHandler(mesh.DirectProtocol)
	for _, c := range nodes[2].host.Network().Conns() { // and the streams that there are end
		for _, s := range c.GetStreams() {
			if s.Protocol() == mesh.DirectProtocol && s.Stat().Direction == network.DirInbound {
				s.Reset()
			}
		}
	}
	for i := range 2 {
		eventually(t, "no stream opens", func() bool {
			for j := range 2 { // neither tells of a line to it any more
				for _, links := range lines(j).Taking {
					if slices.Contains(links, id) {
						return false
					}
				}
			}
			l := lines(i)                                                  // a machine that is busy may find the streams broken by now
			return slices.Contains(slices.Concat(l.Opening, l.Broken), id) // the mesh reaches it
		})
	}
	must(t, errOf(spaces[0].Put(t.Context(), []byte("k"), []byte("v"))))
	for _, ns := range spaces[1:] {
		eventually(t, "it holds what was pushed", func() bool { _, err := ns.Get(t.Context(), []byte("k")); return err == nil })
	}
}

// While a node dials a member that does not answer, it goes on to hear which connections
// come and go: the host waits until it has.
func TestLinksAreHeardWhileOneIsDialled(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel takes connections, and nothing answers
	must(t, err)
	defer silent.Close()
	n := openForTest(t, Config{ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"}, SyncInterval: time.Hour, Limits: Limits{DialTimeout: time.Minute}})
	ns := createForTest(t, n, Policy{})
	id := openForTest(t, Config{ListenAddrs: []string{}}).ID()
	must(t, errOf(n.AddPeer(t.Context(), fmt.Sprintf("/ip4/127.0.0.1/tcp/%d/p2p/%s", silent.Addr().(*net.TCPAddr).Port, id))))
	must(t, ns.SetRole(t.Context(), id, RoleRead))
	if _, err := n.CreateNamespace(t.Context(), "another", Policy{}); err != nil { // it looks for links
		t.Fatal(err)
	}
	dial, err := silent.Accept()
	must(t, err)
	defer dial.Close()
	told, err := n.host.EventBus().Emitter(new(event.EvtPeerConnectednessChanged))
	must(t, err)
	defer told.Close()
	stranger := ID("stranger")
	for range 1000 {
		must(t, told.Emit(event.EvtPeerConnectednessChanged{Peer: stranger, Connectedness: network.Connected}))
	}
	_ = dial.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := io.Copy(io.Discard, dial); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("what is told of connections waits until the dial has ended")
	}
}

// A node knows of the peers that it has synced with which of them push.
func TestWhichPeersPush(t *testing.T) {
	config := Config{ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"}, SyncInterval: time.Hour}
	quiet := config
	quiet.NoPush = true
	nodes, spaces := clusterForTest(t, Policy{}, config, config, quiet)
	for i, n := range nodes[1:] {
		must(t, errOf(spaces[i+1].Sync(t.Context(), nodes[0].ID(), SyncOptions{})))
		eventually(t, "it has said what it speaks", func() bool {
			spoken, err := nodes[0].host.Peerstore().SupportsProtocols(n.ID(), syncProtocol)
			return err == nil && len(spoken) > 0
		})
		if pushes := nodes[0].peerPushes(node.ID(n.ID())); pushes != (i == 0) {
			t.Errorf("node %d pushes: %v", i+1, pushes)
		}
	}
}
