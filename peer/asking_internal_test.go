package peer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
)

// A member that takes the question and says nothing holds up none of the others: the one
// that answers is told of as it is, though the time is over before the other has answered.
func TestClusterTimesOut(t *testing.T) {
	nodes, spaces := newAsking(t)
	third, err := Open(t.Context(), Config{ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"}, SyncInterval: time.Hour, NoPush: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := third.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	ticket, err := spaces[0].Invite(t.Context(), InviteOptions{Role: RoleRead})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := third.Join(t.Context(), ticket); err != nil {
		t.Fatal(err)
	}
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

// Questions are asked so many at a time, and those first for which no dial is wanted.
func TestSomeAtATime(t *testing.T) {
	const most, all = 3, 10
	var mu sync.Mutex
	running, greatest, done := 0, 0, []int{}
	var full sync.WaitGroup
	full.Add(most)
	some(most, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, func(i int) bool { return i >= all-most }, func(i int) {
		mu.Lock()
		running++
		greatest = max(greatest, running)
		done = append(done, i)
		early := len(done) <= most
		mu.Unlock()
		if early { // so many do run at once
			full.Done()
			full.Wait()
		}
		mu.Lock()
		running--
		mu.Unlock()
	})
	if greatest != most || len(done) != all {
		t.Errorf("%d at a time, %v", greatest, done)
	}
	for _, i := range done[:most] {
		if i < all-most {
			t.Errorf("%v: the far ones came first", done)
		}
	}
}

// While a relay does not answer, the events of the host are taken all the same: what is not
// taken holds up the host.
func TestSilentRelayHoldsUpNoEvents(t *testing.T) {
	silent, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableRelay())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	asked := make(chan struct{})
	var once sync.Once
	silent.SetStreamHandler("/libp2p/circuit/relay/0.2.0/hop", func(network.Stream) { once.Do(func() { close(asked) }) })
	h, err := libp2p.New(libp2p.NoListenAddrs)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	r := &relays{at: []peer.AddrInfo{{ID: silent.ID(), Addrs: silent.Addrs()}}, host: h, reserved: map[ID]bool{}}
	r.ctx, r.cancel = context.WithCancel(t.Context())
	if r.changed, err = h.EventBus().Emitter(new(event.EvtAutoRelayAddrsUpdated), eventbus.Stateful); err != nil {
		t.Fatal(err)
	}
	r.start()
	defer func() {
		_ = silent.Close() // libp2p waits for a relay's answer whatever the context says
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	}()
	<-asked
	emitter, err := h.EventBus().Emitter(new(event.EvtPeerConnectednessChanged))
	if err != nil {
		t.Fatal(err)
	}
	defer emitter.Close()
	emitted := make(chan struct{})
	go func() {
		defer close(emitted)
		for range 1000 {
			_ = emitter.Emit(event.EvtPeerConnectednessChanged{Peer: "another", Connectedness: network.Connected})
		}
	}()
	select {
	case <-emitted:
	case <-time.After(relayTimeout / 2):
		t.Error("the events wait for the relay")
	}
}
