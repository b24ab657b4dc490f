package model

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/reconcile/replica"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// ErrDown: the node does not run.
var ErrDown = errors.New("the node is down")

// Node is one machine: a disk, a clock, and now and then a process.
type Node struct {
	cluster *Cluster
	world   *sim.World
	id      int
	name    []byte
	writer  dbadapter.WriterID
	disk    *sim.Disk
	copied  *sim.Disk // the last copy that was kept; nil if none was
	wall    wall
	old     bool          // it speaks an older version of the protocol
	damage  error         // why it does not start
	frozen  time.Duration // until when it stands still
	starts  uint64
	dials   uint64
	crash   crash
	process *process // nil while the node is down
}

// process is what is lost with a crash.
type process struct {
	node        *Node
	store       *store
	live        *replica.Live
	clock       *hlc.Clock
	incarnation uint64
	sessions    []*session
	calls       map[int]int // sessions that this node began, by peer
	incoming    map[int]int // those that peers began
	lanes       map[int]*lane
	rounds      *timer
	asides      map[int]*aside
	openings    map[int][]int
	syncing     bool   // a sync of the disk is due
	writes      uint64 // begun here
	applied     int    // records, in all
	dump        []dbadapter.Record
	dumped      int // applied, when dump was made; -1: never
}

func newNode(c *Cluster, id int) *Node {
	n := &Node{cluster: c, world: c.World, id: id, name: fmt.Appendf(nil, "node-%04d", id)}
	n.wall.world = c.World
	n.insert(sim.NewDisk(c.World, id))
	sum := sha256.Sum256(n.name)
	if c.Signed {
		sum = sha256.Sum256(keyOf(id).Public().(ed25519.PublicKey))
	}
	n.writer = dbadapter.WriterID(binary.BigEndian.Uint64(sum[:]))
	return n
}

func (n *Node) insert(d *sim.Disk) {
	n.disk = d
	d.Before = n.crash.count
}

// Start starts a node that is down. It stays down where its data is damaged.
func (n *Node) Start() error {
	if n.process != nil || n.damage != nil {
		return n.damage
	}
	c := n.cluster
	n.starts++
	p := &process{
		node: n, live: replica.New(c.keys), clock: hlc.New(n.wall.now),
		incarnation: n.world.Draw(sim.ForIncarnation, uint64(n.id), n.starts, 0),
		calls:       map[int]int{}, incoming: map[int]int{},
		lanes: map[int]*lane{}, asides: map[int]*aside{}, openings: map[int][]int{}, dumped: -1,
	}
	err := p.open()
	n.world.Note("start", n.id, boolean(err == nil), nil)
	if errors.Is(err, dbadapter.ErrCorrupt) {
		n.damage = err
	}
	if err != nil {
		c.Watch.Refused(n.id, err)
		return err
	}
	n.process = p
	c.Watch.Started(n.id, p.records())
	p.background()
	return nil
}

// open does what package peer does when it opens a namespace.
func (p *process) open() (err error) {
	c := p.node.cluster
	if p.store, err = openStore(p.node.disk, c.keys.ID, c.keys.Hasher, p.live.Observe); err != nil {
		return err
	}
	snap, err := p.store.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	if err := p.live.Load(context.Background(), snap, nil); err != nil {
		return err
	}
	p.clock.Observe(hlc.Timestamp(p.store.Latest()))
	return nil
}

// Crash ends the process at once, and with it the machine: what was not synced
// is at the mercy of the disk.
func (n *Node) Crash() {
	if n.process == nil {
		return
	}
	n.world.Note("crash", n.id, 0, nil)
	n.end(true)
	n.disk.PowerCut()
}

// Stop ends the process in order: what was begun is finished.
func (n *Node) Stop() {
	n.guard(func() {
		if p := n.process; p != nil {
			p.flush()
			n.world.Note("stop", n.id, 0, nil)
			n.end(false)
		}
	})
}

// end forgets the process.
func (n *Node) end(silently bool) {
	p := n.process
	n.process = nil
	n.crash.disarm()
	for _, x := range p.sessions {
		x.abandon(silently)
	}
	_ = p.store.Close() // it is in memory
}

// Up reports whether the node runs.
func (n *Node) Up() bool { return n.process != nil }

// Old reports whether it speaks an older version of the protocol.
func (n *Node) Old() bool { return n.old }

// Damage is why the node cannot start, or nil.
func (n *Node) Damage() error { return n.damage }

// Flipped reports whether a bit of its disk was flipped.
func (n *Node) Flipped() bool { return n.disk.Flipped }

// Speak restarts the node with an older version of the protocol, or with the
// current one.
func (n *Node) Speak(old bool) error {
	n.Stop()
	n.old = old
	return n.Start()
}

// Copy keeps a copy of what is synced.
func (n *Node) Copy() { n.copied = n.disk.Copy() }

// HasCopy reports whether a copy was kept.
func (n *Node) HasCopy() bool { return n.copied != nil }

// Restore replaces the disk of a node that is down by the copy, and starts the
// node.
func (n *Node) Restore() error {
	n.insert(n.copied.Copy())
	n.damage = nil
	return n.Start()
}

// Flip turns a bit of what is synced; see sim.Disk.
func (n *Node) Flip(at uint64) { n.disk.Flip(at) }

// Fill makes the disk full, or gives it room again.
func (n *Node) Fill(full bool) { n.disk.Full = full }

// Freeze stops the process for a time.
func (n *Node) Freeze(d time.Duration) { n.frozen = max(n.frozen, n.world.Now()+d) }

// Frozen is until when the process stands still.
func (n *Node) Frozen() time.Duration { return n.frozen }

// records are all that the node holds, tombstones included, by key. They are
// read once after each commit, and must not be changed.
func (p *process) records() []dbadapter.Record {
	if p.dumped == p.applied {
		return p.dump
	}
	snap, err := p.store.Snapshot()
	if err != nil {
		panic(err) // it is in memory, and open
	}
	defer snap.Close()
	p.dump, p.dumped = make([]dbadapter.Record, 0, len(p.dump)+16), p.applied
	for r, err := range snap.Scan(context.Background(), nil, nil) {
		if err != nil {
			panic(err)
		}
		p.dump = append(p.dump, r.Record)
	}
	return p.dump
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Close ends all processes, and with them what their sessions hold.
func (c *Cluster) Close() {
	for _, n := range c.nodes {
		if n.process != nil {
			n.end(true)
		}
	}
}
