package nodes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
)

// MaxNodes bounds a net: each node takes tens of MiB for the tables of its store in
// memory, and all are connected with all.
const MaxNodes = 64

// Name is the local name of the shared namespace on every node.
const Name = "testnet"

// Config configures a net. Nodes and Dir have no default.
type Config struct {
	// Nodes is how many there are, 1 to MaxNodes.
	Nodes int
	// Dir is a folder for the nodes' own folders. It is not removed.
	Dir string
	// Memory keeps the records in memory, not in Pebble; they still outlive a restart
	// of their node.
	Memory bool
	// Policy of the shared namespace. Default: signed, five minutes of skew.
	Policy peer.Policy
	// Interval is the pause between background syncs. 0: no background syncs;
	// Converge then syncs the nodes itself.
	Interval time.Duration
	// Limits of each node. Default: those of package peer, with 5 s for a dial
	// and for a silent peer.
	Limits peer.Limits
	// Logger returns the logger of each node. Default: no log.
	Logger func(node int) *slog.Logger
	// MaxHeap bounds the live heap of the process, in bytes, at each check.
	// Default: 256 MiB and 128 MiB for each node.
	MaxHeap int64

	// faulty, in tests of this package, stands between the recorder and the
	// store of a node.
	faulty func(node int, s dbadapter.Store) dbadapter.Store
}

// patience bounds a dial, and the silence of a peer, on loopback: long for a busy
// machine, short for a test of a held link.
const patience = 5 * time.Second

func (c *Config) check() error {
	if c.Nodes < 1 || c.Nodes > MaxNodes {
		return fmt.Errorf("a net of %d nodes; want 1 to %d", c.Nodes, MaxNodes)
	}
	if c.Dir == "" {
		return errors.New("a net needs a folder for its nodes")
	}
	if c.Limits.DialTimeout == 0 {
		c.Limits.DialTimeout = patience
	}
	if c.Limits.IdleTimeout == 0 {
		c.Limits.IdleTimeout = patience
	}
	if c.MaxHeap == 0 {
		c.MaxHeap = 256<<20 + int64(c.Nodes)*128<<20
	}
	return nil
}

// Net is a number of nodes and the links between them. Its methods are for one
// goroutine; the nodes and namespaces that it gives are for any number.
type Net struct {
	config   Config
	label    string
	links    *links
	parted   bell // a connection has ended somewhere
	recorder *recorder
	places   []*node
	moved    bool // a node has changed its address
}

// Open starts the nodes. The first makes the namespace and is its admin; all
// others join it with the role write. All know all members and their addresses.
func Open(ctx context.Context, cfg Config) (_ *Net, err error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	n := &Net{config: cfg, label: newLabel(), links: newLinks(), recorder: newRecorder()}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open a net of %d nodes: %w", cfg.Nodes, err), n.Close(context.WithoutCancel(ctx)))
		}
	}()
	for i := range cfg.Nodes {
		p, err := newNode(i, &cfg)
		if err != nil {
			return nil, err
		}
		n.places = append(n.places, p)
		n.links.nodes[p.id] = i
	}
	if err := n.each(n.places, func(p *node) error { return n.start(ctx, p) }); err != nil {
		return nil, err
	}
	if err := n.found(ctx); err != nil {
		return nil, err
	}
	return n, nil
}

// found makes the namespace and its members as users do: the first node invites
// all others, one after the other. A node learns the members of the moment when it
// joins, with their addresses; the later ones it learns by syncs.
func (n *Net) found(ctx context.Context) error {
	space, err := n.places[0].running.node.CreateNamespace(ctx, Name, n.config.Policy)
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

// introduce tells a node the addresses of all running nodes.
func (n *Net) introduce(ctx context.Context, to *node) error {
	for _, p := range n.places {
		if p == to || p.running == nil {
			continue
		}
		for _, address := range p.running.node.Addrs() {
			if _, err := to.running.node.AddPeer(ctx, address); err != nil {
				return err
			}
		}
	}
	return nil
}

// Len is the number of nodes, running or not.
func (n *Net) Len() int { return len(n.places) }

// Node is the i-th node, from 0, or nil while it is down. After a restart it
// is another one.
func (n *Net) Node(i int) *peer.Node {
	if r := n.places[i].running; r != nil {
		return r.node
	}
	return nil
}

// Namespace is the shared namespace on the i-th node, or nil while the node is
// down or if it has dropped it.
func (n *Net) Namespace(i int) *peer.Namespace {
	if r := n.places[i].running; r != nil {
		for _, s := range r.node.Namespaces() {
			if n.recorder.isShared(s.ID()) {
				return s
			}
		}
	}
	return nil
}

// ID is the identity of the i-th node, running or not.
func (n *Net) ID(i int) peer.ID { return n.places[i].id }

// Now is the reading of the wall clock of the i-th node.
func (n *Net) Now(i int) time.Time { return n.places[i].now() }

// Skew sets the wall clock of the i-th node ahead of the machine's, or behind
// it. Skews do not add up: 0 sets the clock right. A node offers a record that was
// rejected as too far ahead again five minutes later, by its own clock.
func (n *Net) Skew(i int, d time.Duration) { n.places[i].skew.Store(int64(d)) }

// Partition lets the nodes of a group reach one another only; the nodes in no
// group form one more. Connections between groups break at once, with all streams
// on them, and dials are refused. It replaces an earlier partition, and ends all
// cuts.
func (n *Net) Partition(ctx context.Context, groups ...[]int) error {
	group := make([]int, n.Len())
	for g, members := range groups {
		for _, i := range members {
			if i < 0 || i >= n.Len() {
				return fmt.Errorf("partition: there is no node %d", i)
			}
			if group[i] != 0 {
				return fmt.Errorf("partition: node %d is named twice", i)
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
	return n.awaitApart(ctx, apart)
}

// Cut holds back the bytes from one node to another, as a network does that drops its
// packets. Connections hang until a time-out ends them, or until Heal lets the held
// bytes pass. New connections between the two fail, from either side. Bytes of the
// other direction still arrive as long as the connection lives (in a real network its
// window would fill up at last).
func (n *Net) Cut(from, to int) error {
	if from == to || min(from, to) < 0 || max(from, to) >= n.Len() {
		return fmt.Errorf("cut: there is no link from node %d to node %d", from, to)
	}
	n.links.hold(from, to)
	return nil
}

// Heal ends the partition and all cuts. Nodes connect again with the next sync;
// after failures, background syncs rest for some intervals first.
func (n *Net) Heal() { n.links.heal() }

// awaitApart waits until both sides of broken connections have noticed, so that
// their next use dials anew.
func (n *Net) awaitApart(ctx context.Context, pairs [][2]int) error {
	for {
		changed := n.parted.wait()
		if !n.connected(pairs) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait until broken connections are noticed: %w", ctx.Err())
		}
	}
}

func (n *Net) connected(pairs [][2]int) bool {
	sees := func(a, b int) bool {
		r := n.places[a].running
		if r == nil {
			return false
		}
		return r.host.Network().Connectedness(n.places[b].id) == network.Connected
	}
	for _, p := range pairs {
		if sees(p[0], p[1]) || sees(p[1], p[0]) {
			return true
		}
	}
	return false
}
