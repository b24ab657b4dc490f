package peer

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/push"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// toAll gives the members to which a namespace pushes directly.
func toAll(ns *Namespace, l *push.Lines) (to []node.ID, whole bool) {
	audience, _ := ns.core.Audience()
	return ns.shards()[0].set.Pushes().Direct(new(push.Push), audience, l)
}

// directCluster is n members of a namespace that have lines to one another.
func directCluster(t *testing.T, n int) (nodes []*Node, spaces []*Namespace) {
	t.Helper()
	for i := range n {
		nodes = append(nodes, openForTest(t, Config{ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"}, SyncInterval: time.Hour}))
		if i == 0 {
			ns, err := nodes[0].CreateNamespace(t.Context(), "notes", Policy{})
			if err != nil {
				t.Fatal(err)
			}
			spaces = append(spaces, ns)
			continue
		}
		ticket, err := spaces[0].Invite(t.Context(), InviteOptions{Role: RoleWrite})
		if err != nil {
			t.Fatal(err)
		}
		ns, err := nodes[i].Join(t.Context(), ticket)
		if err != nil {
			t.Fatal(err)
		}
		spaces = append(spaces, ns)
	}
	for i := range nodes {
		waitFor(t, fmt.Sprintf("node %d has a line to each other one, and has heard of theirs", i), func() bool {
			l := nodes[i].pushes.direct.linesOf(spaces[i].shards()[0].set.Keys.Topic)
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
	if err := nodes[3].Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		waitFor(t, "the others have lines to one another only", func() bool {
			to, whole := toAll(spaces[i], nodes[i].pushes.direct.linesOf(spaces[i].shards()[0].set.Keys.Topic))
			return whole && len(to) == 2
		})
	}
	if _, err := spaces[0].Put(t.Context(), []byte("k"), []byte("v")); err != nil {
		t.Fatal(err)
	}
	for _, ns := range spaces[1:3] {
		waitFor(t, "it holds what was pushed", func() bool { _, err := ns.Get(t.Context(), []byte("k")); return err == nil })
	}
}

// A namespace that is paused is taken no more, and again once it is resumed.
func TestPausedNamespacesAreNotTaken(t *testing.T) {
	nodes, spaces := directCluster(t, 2)
	taken := func() bool {
		_, takes := nodes[0].pushes.direct.linesOf(spaces[0].shards()[0].set.Keys.Topic).Taking[node.ID(nodes[1].ID())]
		return takes
	}
	if err := spaces[1].Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the other says that it takes no pushes", func() bool { return !taken() })
	if err := spaces[1].Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the other says that it takes pushes", taken)
}

// A member that takes no streams of direct pushes, and that the mesh reaches, gets pushes
// over the mesh. Once its streams have failed often enough, pushes go directly to the others,
// and the digests bring it to sync.
func TestMembersWithoutStreams(t *testing.T) {
	nodes, spaces := directCluster(t, 3)
	id := node.ID(nodes[2].ID())
	lines := func(i int) *push.Lines { return nodes[i].pushes.direct.linesOf(spaces[i].shards()[0].set.Keys.Topic) }
	nodes[2].host.RemoveStreamHandler(directProtocol)
	refuses := func() { // and the streams that there are end
		d := nodes[2].pushes.direct
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, in := range d.inlets {
			in.stream.Reset()
		}
	}
	refuses()
	for i := range 2 {
		waitFor(t, "no stream opens", func() bool {
			d := nodes[i].pushes.direct
			d.mu.Lock()
			failed := d.broken[nodes[2].ID()]
			d.mu.Unlock()
			for j := range 2 { // neither tells of a line to it any more
				for _, links := range lines(j).Taking {
					if slices.Contains(links, id) {
						return false
					}
				}
			}
			return failed >= 3 && slices.Contains(lines(i).Opening, id)
		})
	}
	put := func(key string) {
		t.Helper()
		if _, err := spaces[0].Put(t.Context(), []byte(key), []byte("v")); err != nil {
			t.Fatal(err)
		}
		for _, ns := range spaces[1:] {
			waitFor(t, "it holds what was pushed", func() bool { _, err := ns.Get(t.Context(), []byte(key)); return err == nil })
		}
	}
	waitFor(t, "the mesh is there", func() bool {
		peers := nodes[0].pushes.pubsub.ListPeers(topicOf(spaces[0].shards()[0].set))
		return slices.Contains(peers, nodes[1].ID()) && slices.Contains(peers, nodes[2].ID())
	})
	put("over the mesh")
	for i := range 2 {
		d := nodes[i].pushes.direct
		d.mu.Lock()
		d.broken[nodes[2].ID()] = brokenLine
		d.mu.Unlock()
	}
	if to, whole := toAll(spaces[0], lines(0)); !whole || len(to) != 1 {
		t.Errorf("a push goes to %d, whole %v", len(to), whole)
	}
	put("told by a digest")
}

// What waits for a slow member is bounded, and of what is beyond it is told once.
func TestLineOverflow(t *testing.T) {
	l := newLine("slow")
	topic := wire.Topic{1}
	other := wire.Topic{2}
	l.hear(&wire.Takes{Kind: wire.TakesTopic, Topic: topic})
	data := bytes.Repeat([]byte{1}, 30<<10)
	for range 10 * pushQueue {
		l.add(topic, new(push.Push), data)
		l.add(other, new(push.Push), data) // it is not taken
	}
	if l.bytes > lineBytes || l.count > pushQueue || l.queued(topic) != l.bytes || l.queued(other) != 0 {
		t.Errorf("%d pushes of %d bytes wait", l.count, l.bytes)
	}
	var sent []byte
	var last wire.Topic
	for b := l.next(&last); len(b) > 0; b = l.next(&last) {
		if len(b) > lineWrite+len(data)+64 {
			t.Errorf("%d bytes are written at once", len(b))
		}
		sent = append(sent, b...)
	}
	r := bufio.NewReader(bytes.NewReader(sent))
	more := 0
	for {
		var of wire.Topic
		got, err := wire.ReadDirect(r, &of)
		if err != nil {
			break
		}
		if more > 0 {
			t.Error("there is a push behind the one that says that there is more")
		}
		if m, err := wire.ParsePush(got); err == nil && m.Kind == wire.PushMore {
			more++
		}
	}
	if more != 1 {
		t.Errorf("%d pushes say that there is more", more)
	}
	l.add(topic, new(push.Push), data)
	if b := l.next(&last); len(b) < len(data) {
		t.Error("nothing is pushed once there is room again")
	}
}
