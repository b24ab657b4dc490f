package peer

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// A member that takes the question and says nothing holds up none of the others: the one
// that answers is told of as it is, though the time is over before the other has answered.
func TestClusterTimesOut(t *testing.T) {
	nodes, spaces := newAsking(t, 3)
	third := nodes[2]
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
		for Questions(nodes[0], third.ID()) > 0 {
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
