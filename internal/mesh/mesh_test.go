package mesh

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/reconcile/wire"
)

func newMesh() *Mesh {
	m := &Mesh{topics: map[string]*follower{}}
	m.direct = newDirect(m)
	return m
}

// A set that was dropped and is here again, before what ran in it has ended, is followed.
func TestTopicIsTakenAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, topic := newMesh(), wire.Topic{1}
		follow := func(ctx context.Context) (f *follower, taken chan func()) {
			f = &follower{ctx: ctx, topic: topic, over: make(chan struct{})}
			taken = make(chan func(), 1)
			go func() {
				leave, _ := m.take(f)
				taken <- leave
			}()
			synctest.Wait()
			return f, taken
		}
		ended, end := context.WithCancel(t.Context())
		old, took := follow(t.Context())
		again, retook := follow(t.Context())
		_, never := follow(ended)
		end()
		if leave := <-never; leave != nil || m.follower(topicOf(topic)) != old || len(retook) != 0 {
			t.Errorf("%p follows the topic, want %p", m.follower(topicOf(topic)), old)
		}
		(<-took)()
		leave := <-retook
		if m.follower(topicOf(topic)) != again {
			t.Error("the topic is not taken again")
		}
		leave()
		if m.follower(topicOf(topic)) != nil {
			t.Error("the topic is followed after the end")
		}
	})
}

// A member that names topics without end makes the node remember few of them. The node's own
// topics pass.
func TestEndlessTopics(t *testing.T) {
	own := fmt.Sprintf("%032x", 0)
	f := &topicFilter{own: func(topic string) bool { return topic == own }, strange: map[string]struct{}{}, from: map[peer.ID]int{}}
	kept := 0
	for i := range 4 * maxStrangeTopicsPerPeer {
		name := fmt.Sprintf("%032x", i+1)
		subscribe := true
		subs, err := f.FilterIncomingSubscriptions("endless", []*pb.RPC_SubOpts{{Topicid: &name, Subscribe: &subscribe}, {Topicid: &own, Subscribe: &subscribe}})
		if err != nil || !slices.ContainsFunc(subs, func(s *pb.RPC_SubOpts) bool { return s.GetTopicid() == own }) {
			t.Fatalf("behind topic %d: %v, %v", i, subs, err)
		}
		kept += len(subs) - 1
	}
	if kept != maxStrangeTopicsPerPeer {
		t.Errorf("%d topics are kept, at most %d may be", kept, maxStrangeTopicsPerPeer)
	}
	if _, err := f.FilterIncomingSubscriptions("endless", make([]*pb.RPC_SubOpts, maxSubscriptions+1)); err == nil {
		t.Error("a message names topics without end")
	}
}

// A member whose streams have failed often enough is waited for no longer.
func TestBrokenLines(t *testing.T) {
	d := newMesh().direct
	d.lines["ready"], d.lines["away"], d.lines["lost"] = newLine("ready"), newLine("away"), newLine("lost")
	d.lines["ready"].hear(&wire.Takes{Kind: wire.TakesReady})
	d.lines["ready"].hear(&wire.Takes{Kind: wire.TakesTopic, Links: [][]byte{[]byte("away")}})
	d.broken["away"], d.broken["lost"] = brokenLine-1, brokenLine
	all := d.reached(wire.Topic{}, func() []peer.ID { return []peer.ID{"away", "lost"} })
	if !slices.Equal(all.Taking["ready"], []node.ID{"away"}) || !slices.Equal(all.Opening, []node.ID{"away"}) || !slices.Equal(all.Broken, []node.ID{"lost"}) {
		t.Errorf("%+v", all)
	}
	if all := d.reached(wire.Topic{}, func() []peer.ID { return nil }); len(all.Opening)+len(all.Broken) != 0 {
		t.Errorf("of members that the mesh does not reach: %+v", all)
	}
}
