package peer

import (
	"context"
	"slices"
	"testing"
	"time"
)

// A namespace that is dropped leaves nothing behind that holds its memory.
func TestDroppedNamespacesAreForgotten(t *testing.T) {
	n := openFollowed(t)
	if err := n.DropNamespace(t.Context(), "notes", DropOptions{}); err != nil {
		t.Fatal(err)
	}
	n.shards.Range(func(set, _ any) bool {
		t.Errorf("%p is still there", set)
		return true
	})
}

// One that was dropped and is joined again, before what ran in it has ended, pushes.
func TestTopicIsTakenAnew(t *testing.T) {
	n := openFollowed(t)
	old, err := n.Namespace("notes")
	if err != nil {
		t.Fatal(err)
	}
	topic := topicOf(old.shards()[0].set)
	topics := func() bool {
		return slices.Contains(n.pushes.pubsub.GetTopics(), topic) && n.pushes.serves(n.self.id, topic)
	}
	waitFor(t, "the namespace pushes", topics)
	again := &Namespace{node: n, core: old.core, id: old.id, gate: newGate()}
	again.ctx, again.cancel = context.WithCancel(n.ctx)
	n.pushes.start(again.openShard(old.shards()[0].set))
	time.Sleep(100 * time.Millisecond)
	old.cancel()
	time.Sleep(100 * time.Millisecond)
	waitFor(t, "it pushes again", topics)
	again.gate.close()
	again.cancel()
	<-again.gate.empty
	if n.pushes.serves(n.self.id, topic) {
		t.Error("the topic is served after the end")
	}
}

// openFollowed is a node with a namespace.
func openFollowed(t *testing.T) *Node {
	n, err := Open(t.Context(), Config{ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"}, SyncInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if _, err := n.CreateNamespace(t.Context(), "notes", Policy{}); err != nil {
		t.Fatal(err)
	}
	return n
}
