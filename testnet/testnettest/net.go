package testnettest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/pprof"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/reconcile"
)

const (
	// maxNodes bounds a net: each node takes tens of MiB for the tables of its store in
	// memory, and all are connected with all.
	maxNodes = 64
	// patience bounds each step that waits for nodes to start, stop or notice. Only a
	// node that hangs reaches it.
	patience = time.Minute
	// silence bounds a dial, and the silence of a peer, on loopback: long for a busy
	// machine, short for a test of a held link.
	silence = 5 * time.Second
	// spaceName is the local name of the shared namespace on every node.
	spaceName = "testnet"
)

// Option changes what New makes.
type Option func(*config)

type config struct {
	memory   bool
	policy   peer.Policy
	interval time.Duration // 0: AssertConverged syncs the nodes itself
	limits   peer.Limits
	// faulty, in tests of this package, stands between the recorder and the
	// store of a node.
	faulty func(node int, s dbadapter.Store) dbadapter.Store
}

// Memory keeps the records in memory, not in a database on disk. They still outlive
// restarts and kills of their node.
func Memory() Option { return func(c *config) { c.memory = true } }

// Policy is the shared namespace's. Default: signed, five minutes of skew.
func Policy(p peer.Policy) Option { return func(c *config) { c.policy = p } }

// Background makes the nodes sync by themselves, each with every other, at this
// mean interval. AssertConverged then waits for them. Default: no background
// syncs; the test, the application or AssertConverged begins each sync.
func Background(interval time.Duration) Option {
	return func(c *config) { c.interval = interval }
}

// Limits are those of each node. Default: those of package peer, with 5 seconds
// for a dial and for a silent peer.
func Limits(l peer.Limits) Option { return func(c *config) { c.limits = l } }

// Net is a number of nodes, numbered from 0. Call its methods from the test's own
// goroutine: they fail the test if they fail. Any goroutine may use its nodes and
// namespaces.
type Net struct {
	t        testing.TB
	config   config
	dir      string
	label    string
	links    *links
	recorder *recorder
	logs     *logs
	places   []*node
	moved    bool // a node has changed its address
}

// New starts n nodes. The first makes the namespace and is its admin; the others
// join it with the role write. The test's cleanup ends them, and looks for leaks;
// your own cleanups, which run before, close what uses the nodes. Until then the
// test's goroutine, and those it starts, have a profiler label, by which the net
// finds leaked goroutines.
func New(t testing.TB, n int, options ...Option) *Net {
	t.Helper()
	if n < 1 || n > maxNodes {
		t.Fatalf("a net of %d nodes; want 1 to %d", n, maxNodes)
	}
	net := &Net{t: t, dir: t.TempDir(), label: rand.Text(), links: newLinks(), recorder: newRecorder(), logs: newLogs(n)}
	for _, o := range options {
		o(&net.config)
	}
	limits := &net.config.limits
	limits.DialTimeout, limits.IdleTimeout = cmp.Or(limits.DialTimeout, silence), cmp.Or(limits.IdleTimeout, silence)
	t.Cleanup(net.end)
	net.do(fmt.Sprintf("open a net of %d nodes", n), func(ctx context.Context) error { return net.open(ctx, n) })
	net.adopt()
	return net
}

func (n *Net) open(ctx context.Context, count int) error {
	for i := range count {
		p, err := n.newNode(i)
		if err != nil {
			return err
		}
		n.places = append(n.places, p)
		n.links.nodes[p.id] = i
	}
	if err := n.each(n.places, func(p *node) error { return n.start(ctx, p) }); err != nil {
		return err
	}
	return n.found(ctx)
}

// found makes the namespace and its members as users do: the first node invites
// all others, one after the other. A node learns the members of the moment when it
// joins, with their addresses; the later ones it learns by syncs.
func (n *Net) found(ctx context.Context) error {
	space, err := n.places[0].running.node.CreateNamespace(ctx, spaceName, n.config.policy)
	if err != nil {
		return err
	}
	for _, p := range n.places[1:] {
		ticket, err := space.Invite(ctx, peer.InviteOptions{Role: peer.RoleWrite})
		if err != nil {
			return err
		}
		if _, err := p.running.node.Join(ctx, ticket); err != nil {
			return err
		}
	}
	for _, m := range space.Members() {
		for _, p := range n.places {
			if m.ID == p.id {
				p.writer.Store(uint64(m.Writer))
			}
		}
	}
	return nil
}

// end ends all nodes and looks for leaks.
func (n *Net) end() {
	pprof.SetGoroutineLabels(context.Background())
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := n.close(ctx); err != nil {
		n.t.Errorf("at the end of the test: %v", err)
	}
	if n.t.Failed() {
		n.logs.show(n)
	}
}

// close ends all nodes and looks for leaks. It looks for goroutines that they, or
// the test, have started, and for open files below the net's folder. In libp2p's
// resource managers it looks for connections, streams and memory in use.
func (n *Net) close(ctx context.Context) error {
	err := n.each(n.places, func(p *node) error {
		r := p.running
		if r == nil {
			return nil
		}
		p.running, p.closed = nil, append(p.closed, r.host)
		return r.close(ctx)
	})
	return errors.Join(err, n.leaks(ctx))
}

// do runs a step of the net under a deadline.
func (n *Net) do(what string, step func(ctx context.Context) error) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := step(ctx); err != nil {
		n.t.Fatalf("%s: %v", what, err)
	}
}

// each runs fn for the places at once, within the net's label.
func (n *Net) each(places []*node, fn func(*node) error) error {
	errs := make([]error, len(places))
	var all sync.WaitGroup
	for i, p := range places {
		all.Go(func() {
			n.adopt()
			errs[i] = fn(p)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// until waits until something holds, which it looks at again and again.
func until(ctx context.Context, holds func() (bool, error)) error {
	for {
		if so, err := holds(); so || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		pause(ctx, 2*time.Millisecond)
	}
}

// pause waits for d, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Len is the number of nodes, running or not.
func (n *Net) Len() int { return len(n.places) }

// Node is the i-th node. After Restart, or Kill and Start, it is another one,
// with the same identity; take it anew. It fails the test while the node is down.
func (n *Net) Node(i int) *peer.Node {
	n.t.Helper()
	if !n.Running(i) {
		n.t.Fatalf("node %d is down; Start it first", i)
	}
	return n.places[i].running.node
}

// Namespace is the shared namespace on the i-th node. After a restart it is
// another one, as the node is.
func (n *Net) Namespace(i int) *peer.Namespace {
	n.t.Helper()
	n.Node(i)
	space := n.space(i)
	if space == nil {
		n.t.Fatalf("node %d has dropped the shared namespace", i)
	}
	return space
}

// space is the shared namespace on a node, or nil while the node is down or if it
// has dropped it.
func (n *Net) space(i int) *peer.Namespace {
	if r := n.places[i].running; r != nil {
		for _, s := range r.node.Namespaces() {
			if n.recorder.share(s.ID()) {
				return s
			}
		}
	}
	return nil
}

// Running reports whether the i-th node runs.
func (n *Net) Running(i int) bool { return n.places[i].running != nil }

// Partition lets the nodes of each group reach one another only; the nodes in no
// group form one more. Connections between groups break at once, in the middle of
// a frame, and new ones are refused. It replaces an earlier partition or cut.
func (n *Net) Partition(groups ...[]int) {
	n.t.Helper()
	group := make([]int, n.Len())
	for g, members := range groups {
		for _, i := range members {
			if i < 0 || i >= n.Len() {
				n.t.Fatalf("partition: there is no node %d", i)
			}
			if group[i] != 0 {
				n.t.Fatalf("partition: node %d is named twice", i)
			}
			group[i] = g + 1
		}
	}
	var apart [][2]int
	for i := range group {
		for j := range i {
			if group[i] != group[j] {
				apart = append(apart, [2]int{i, j})
			}
		}
	}
	n.links.part(apart)
	n.do("partition", func(ctx context.Context) error { return n.awaitApart(ctx, apart) })
}

// Cut holds back the bytes from one node to another, as a network does that drops its
// packets. Syncs between them hang until a time-out ends them, or until Heal lets the
// held bytes pass. New connections between the two fail, from either side. Bytes of the
// other direction still arrive as long as the connection lives (in a real network its
// window would fill up at last).
func (n *Net) Cut(from, to int) {
	n.t.Helper()
	if from == to || min(from, to) < 0 || max(from, to) >= n.Len() {
		n.t.Fatalf("cut: there is no link from node %d to node %d", from, to)
	}
	n.links.hold(from, to)
}

// Heal ends the partition and all cuts. The nodes find each other with the next
// sync; background syncs that have failed may rest for some intervals first.
func (n *Net) Heal() { n.links.part(nil) }

// awaitApart waits until both sides of broken connections have noticed, so that
// their next use dials anew.
func (n *Net) awaitApart(ctx context.Context, pairs [][2]int) error {
	sees := func(a, b int) bool {
		r := n.places[a].running
		return r != nil && r.host.Network().Connectedness(n.places[b].id) == network.Connected
	}
	err := until(ctx, func() (bool, error) {
		return !slices.ContainsFunc(pairs, func(p [2]int) bool { return sees(p[0], p[1]) || sees(p[1], p[0]) }), nil
	})
	if err != nil {
		return fmt.Errorf("wait until broken connections are noticed: %w", err)
	}
	return nil
}

// Restart closes the i-th node in an orderly way and opens it again on the same
// data.
func (n *Net) Restart(i int) {
	n.t.Helper()
	n.Stop(i)
	n.Start(i)
}

// Stop closes the i-th node in an orderly way, until Start.
func (n *Net) Stop(i int) {
	n.t.Helper()
	n.down("stop", i, func(ctx context.Context, r *running) error { return r.close(ctx) })
}

// Kill ends the i-th node as a crash of its process would, until Start. Its connections
// break first, in the middle of a frame. Its database is not closed but recovered at the
// next start. The package's limits name the differences from a real crash.
func (n *Net) Kill(i int) {
	n.t.Helper()
	n.down("kill", i, func(ctx context.Context, r *running) error {
		n.links.bury(i)
		return n.places[i].kill(ctx, r)
	})
}

// down ends a node that runs, and waits until no other one counts it as connected.
func (n *Net) down(what string, i int, how func(context.Context, *running) error) {
	n.t.Helper()
	n.do(fmt.Sprintf("%s node %d", what, i), func(ctx context.Context) error {
		p := n.places[i]
		r := p.running
		if r == nil {
			return errors.New("it is down already")
		}
		p.running = nil
		if err := n.each([]*node{p}, func(*node) error { return how(ctx, r) }); err != nil {
			return err
		}
		p.closed = append(p.closed, r.host)
		var pairs [][2]int
		for j := range n.places {
			if j != i {
				pairs = append(pairs, [2]int{j, i})
			}
		}
		return n.awaitApart(ctx, pairs)
	})
}

// Start opens a node that was stopped or killed, on the same data.
func (n *Net) Start(i int) {
	n.t.Helper()
	n.do(fmt.Sprintf("start node %d", i), func(ctx context.Context) error {
		p := n.places[i]
		if p.running != nil {
			return errors.New("it runs")
		}
		before := p.listen
		if err := n.each([]*node{p}, func(p *node) error { return n.start(ctx, p) }); err != nil {
			return err
		}
		if n.space(i) == nil {
			return errors.New("it has lost the namespace")
		}
		n.moved = n.moved || !slices.Equal(before, p.listen)
		if !n.moved {
			return nil
		}
		return n.introduce(ctx)
	})
}

// introduce tells each running node the addresses of all others.
func (n *Net) introduce(ctx context.Context) error {
	for _, to := range n.places {
		for _, p := range n.places {
			if p == to || p.running == nil || to.running == nil {
				continue
			}
			for _, address := range p.running.node.Addrs() {
				if _, err := to.running.node.AddPeer(ctx, address); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Skew sets the wall clock of the i-th node ahead of the true time, or behind it. It
// does not add up: 0 sets the clock right. Writes of a node that is behind lose against
// those that others made before, until it has seen them. Versions too far ahead are
// refused (peer.Policy), and offered again after five minutes of the writer's clock.
func (n *Net) Skew(i int, d time.Duration) { n.places[i].skew.Store(int64(d)) }

// Now is the reading of the wall clock of the i-th node, for applications that
// keep times in their records.
func (n *Net) Now(i int) time.Time { return n.places[i].now() }

// Sync makes the records of two nodes equal; the first begins. It tries again while the
// link is whole and the peer cannot be reached, which may be so for a moment after Heal
// or Restart. Any other failure fails the test. Use Namespace(i).Sync to see a failure.
func (n *Net) Sync(a, b int) (report reconcile.Report) {
	n.t.Helper()
	n.do("sync", func(ctx context.Context) (err error) {
		for {
			report, err = n.sync(ctx, a, b)
			passing := errors.Is(err, peer.ErrUnreachable) || errors.Is(err, peer.ErrBusy)
			if !passing || !n.links.passable(a, b) || ctx.Err() != nil {
				return err
			}
			pause(ctx, retry)
		}
	})
	return report
}

// AssertConverged gives the nodes this time to become equal, and then checks the
// promises in the package's documentation. Without Background it syncs them itself,
// over all links that are whole, until nothing moves; it takes no longer than
// that. Do not write meanwhile. Under a partition each side must agree within
// itself.
func (n *Net) AssertConverged(within time.Duration) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	c, err := n.converge(ctx)
	if err != nil {
		n.t.Fatalf("converge: %v", err)
	}
	if len(c.violations) > 0 || c.late {
		n.t.Error(c.explain())
	}
}

// AssertSame compares what the application makes of the records on each node
// that runs. Call it after AssertConverged.
func (n *Net) AssertSame(what string, view func(i int) string) {
	n.t.Helper()
	first, want := -1, ""
	for i := range n.Len() {
		if !n.Running(i) {
			continue
		}
		got := view(i)
		if first < 0 {
			first, want = i, got
		}
		if got != want {
			n.t.Errorf("%s differs:\n\tnode %d: %s\n\tnode %d: %s\n%s", what, first, want, i, got,
				"the records are compared by AssertConverged; if they are equal, look for state beside them that a sync does not bring up to date")
		}
	}
}
