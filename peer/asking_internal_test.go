package peer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// A member that takes the question and says nothing holds up none of the others: the one
// that answers is told of as it is, though the time is over before the other has answered.
func TestClusterTimesOut(t *testing.T) {
	nodes, spaces := newAsking(t)
	third, err := Open(t.Context(), Config{ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"}, SyncInterval: time.Hour, NoPush: true})
	must(t, err)
	defer func() {
		if err := third.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	ticket, err := spaces[0].Invite(t.Context(), InviteOptions{Role: RoleRead})
	must(t, err)
	must(t, errOf(third.Join(t.Context(), ticket)))
	var both sync.WaitGroup
	both.Add(2)
	nodes[1].host.SetStreamHandler(askProtocol, func(network.Stream) { both.Done() })
	third.host.SetStreamHandler(askProtocol, func(s network.Stream) {
		third.serveAsk(s)
		both.Done()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	go func() {
		both.Wait()
		// The answer has left, and is there once the asker has let go of the stream.
		for asking(nodes[0].host.Network().ConnsToPeer(third.host.ID())) {
			time.Sleep(time.Millisecond) // no event tells of a stream that ends
		}
		cancel()
	}()
	all, err := spaces[0].Cluster(ctx)
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, m := range all {
		switch {
		case m.ID == nodes[1].ID() && !errors.Is(m.Problem, context.Canceled):
			t.Errorf("the silent one: %v", m.Problem)
		case m.ID != nodes[1].ID() && (m.Problem != nil || !m.SameList):
			t.Errorf("the other ones: %+v", m)
		}
	}
}

// asking reports whether a question is on its way on one of the connections.
func asking(conns []network.Conn) bool {
	return slices.ContainsFunc(conns, func(c network.Conn) bool {
		return slices.ContainsFunc(c.GetStreams(), func(s network.Stream) bool { return s.Protocol() == askProtocol })
	})
}
