package peer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/ask"
	"github.com/syncd-io/syncd/internal/netio/stream"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// newAsking are nodes that share a namespace and push nothing.
func newAsking(t *testing.T, n int) (nodes []*Node, spaces []*Namespace) {
	t.Helper()
	return clusterForTest(t, Policy{}, slices.Repeat([]Config{{ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"}, SyncInterval: time.Hour, NoPush: true}}, n)...)
}

// A question that waits is answered when a commit brings about what it asks for; one whose
// time is over is answered with what is there; one whose asker gives up takes no place.
func TestQuestionWaits(t *testing.T) {
	nodes, spaces := newAsking(t, 2)
	asker := nodes[1].ID()
	want := dbadapter.Record{Key: []byte("k"), Version: dbadapter.Version{Clock: 1}}
	got := make(chan ask.Answered, 1)
	go func() {
		a, err := spaces[1].shards()[0].ask(t.Context(), nodes[0].ID(), 5*time.Minute, &wire.AskKey{Held: want})
		if err != nil {
			t.Error(err)
		}
		got <- a
	}()
	eventually(t, "the question waits", func() bool { return spaces[0].shards()[0].set.Waiting() == 1 })
	v, err := spaces[0].Put(t.Context(), []byte("k"), []byte("v"))
	must(t, err)
	if a := <-got; a.Reply == nil || a.Answer.(*wire.KeyAnswer).Held.Version != v {
		t.Errorf("%+v, not %s", a.Reply, v)
	}
	a, err := spaces[1].shards()[0].ask(t.Context(), nodes[0].ID(), time.Millisecond, &wire.AskSet{})
	if err != nil || a.Answer.(*wire.SetAnswer).Sum.Records != 1 {
		t.Errorf("%+v, %v", a.Reply, err)
	}
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	ended := make(chan error)
	go func() {
		_, err := spaces[1].shards()[0].ask(ctx, nodes[0].ID(), 30*time.Second, &wire.AskSet{})
		ended <- err
	}()
	eventually(t, "it waits", func() bool { return Questions(nodes[0], asker) == 1 })
	giveUp()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	eventually(t, "it is forgotten", func() bool { return Questions(nodes[0], asker) == 0 })
}

// A member that sends what is no question, or too much of one, is cut off or told so.
func TestMalformedQuestions(t *testing.T) {
	nodes, spaces := newAsking(t, 2)
	say := func(frame []byte) (wire.Message, error) {
		s, err := nodes[1].host.NewStream(t.Context(), nodes[0].ID(), askProtocol)
		must(t, err)
		defer s.Reset()
		return stream.New(s, nodes[1].carrying()).Exchange(t.Context(), frame)
	}
	for name, frame := range map[string][]byte{
		"another message": wire.Append(nil, &wire.Same{}),
		"too long":        append([]byte{0x81, 0x20}, make([]byte, maxAsk+1)...),
		"malformed":       {2, byte(wire.KindAsk), wire.Version},
	} {
		m, err := say(frame)
		if r, ok := m.(*wire.Refuse); err != nil || !ok || r.Code != wire.CodeProtocol {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	question, err := spaces[1].shards()[0].set.Ask("", 0, &wire.AskSet{})
	if err == nil {
		t.Errorf("a question to a stranger: %+v", question)
	}
	if m, err := say(wire.Append(nil, &wire.Ask{Version: wire.Version, Question: &wire.AskSet{}})); err != nil || !errors.Is(reconcile.Refused(m.(*wire.Refuse)), ErrDenied) {
		t.Errorf("without a proof: %+v, %v", m, err)
	}
}

// A peer that takes a question and says nothing is given up after the time-out.
func TestSilentAnswerer(t *testing.T) {
	nodes, spaces := newAsking(t, 2)
	nodes[1].limits.IdleTimeout = 100 * time.Millisecond
	nodes[0].host.SetStreamHandler(askProtocol, func(network.Stream) {})
	if _, err := spaces[1].shards()[0].ask(t.Context(), nodes[0].ID(), 0, &wire.AskSet{}); !errors.Is(err, ErrUnreachable) {
		t.Error(err)
	}
}

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
