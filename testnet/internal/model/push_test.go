package model

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/testnet/internal/check"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

var pushSeed = flag.Uint64("push.seed", 0, "replay TestPushedUnderLoss with this seed; 0 draws one")

// arrivals notes when each record is first held at each node.
type arrivals struct {
	silent
	world *sim.World
	held  map[string]map[int]time.Duration // by version
}

func (a *arrivals) Observed(node int, r *dbadapter.Record) {
	at := a.held[r.Version.String()]
	if at == nil {
		at = map[int]time.Duration{}
		a.held[r.Version.String()] = at
	}
	if _, known := at[node]; !known {
		at[node] = a.world.Now()
	}
}

// Six nodes that lose 5 % of all messages and never sync at an interval write 200 records
// a second: each write is held by all nodes within 5 s in 99 of 100 cases, and in half of
// them within 100 ms; in the end all nodes hold the same. Times are virtual.
func TestPushedUnderLoss(t *testing.T) {
	seed := *pushSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("replay with -args -push.seed %d", seed)
	w := sim.New(seed)
	book := &arrivals{world: w, held: map[string]map[int]time.Duration{}}
	const nodes, writes = 6, 600
	cl := New(w, sim.NewNet(w, sim.Behaviour{Delay: 2 * time.Millisecond, Jitter: 10 * time.Millisecond, Loss: .05}),
		Config{Nodes: nodes, Skew: time.Minute, Push: true, History: check.New(), Watch: book})
	for _, n := range cl.Nodes() {
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := cl.Found(true); err != nil {
		t.Fatal(err)
	}
	w.Run(w.Now() + 5*time.Second) // the list of members goes round
	clear(book.held)
	begun := map[string]time.Duration{}
	for i := range writes {
		w.Run(w.Now() + 5*time.Millisecond)
		at := w.Now()
		cl.Node(i%nodes).Write([]node.Draft{{Record: dbadapter.Record{Key: fmt.Appendf(nil, "k%d", i), Value: make([]byte, 100)}}}, func(_ int, v dbadapter.Version, err error) {
			if err != nil {
				t.Fatal(err)
			}
			begun[v.String()] = at
		})
	}
	w.Run(w.Now() + 30*time.Second)
	var took []time.Duration
	for version, at := range begun {
		held := book.held[version]
		if len(held) != nodes {
			t.Fatalf("%s is held by %d nodes of %d", version, len(held), nodes)
		}
		last := time.Duration(0)
		for _, then := range held {
			last = max(last, then-at)
		}
		took = append(took, last)
	}
	slices.Sort(took)
	half, most := took[len(took)/2], took[len(took)*99/100]
	t.Logf("%d writes: held by all after %s in half of the cases, %s in 99 %% of them, %s at most", len(took), half, most, took[len(took)-1])
	if half > 100*time.Millisecond || most > 5*time.Second {
		t.Error("a write is late")
	}
	first := cl.Node(0).process.set.Live
	digest, records, _ := first.State()
	for _, n := range cl.Nodes() {
		if d, r, _ := n.process.set.Live.State(); d != digest || r != records {
			t.Errorf("node %d holds another set", n.number)
		}
	}
}
