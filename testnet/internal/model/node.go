package model

import (
	"crypto/ed25519"
	"errors"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/locator"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/push"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// ErrDown: the node does not run.
var ErrDown = errors.New("the node is down")

// Node is one machine: a disk, a clock, and now and then a process.
type Node struct {
	cluster   *Cluster
	world     *sim.World
	number    int
	id        node.ID
	disk      *sim.Disk
	copied    *sim.Disk // the last copy that was kept, or nil
	logs      logs
	wall      wall
	old       bool                     // it speaks an older version of the protocol
	liar      bool                     // its greetings are not true
	right     dbadapter.Timestamp      // to write, as it was when that was looked at last
	misleads  map[string]bool          // keys of which its feed says what is not so: true, that they are there
	tickets   map[int]string           // the last of each inviter
	strikes   int                      // how often what it keeps of its records was damaged
	struck    time.Duration            // the last time
	flipped   map[dbadapter.Range]bool // whose kept sums were
	stray     map[int]bool             // the cells of the next sync with that node hold a wrong pair
	short     map[int]bool             // a check of the next sync with that node is short
	damage    error                    // why it does not start
	frozen    time.Duration            // until when it stands still
	starts    uint64
	crash     crash
	answering bool // it dies when it has answered a question
	programs  []*program
	copies    locator.Memory // of the locator: files that outlive the process
	process   *process       // nil while the node is down
}

// process is the state that a crash loses: the node's decisions in memory, and
// the driver's work in progress.
type process struct {
	node      *Node
	core      *node.Node
	ns        *node.Namespace // nil until the node has joined
	*shard                    // the records of a namespace that is not cut into shards; of another one nothing
	shards    []*shard        // that are open, by number; *shard itself if the namespace is not cut
	drawn     [node.Purposes]uint64
	sessions  []*session
	conns     []*conn
	mark      watermark.State // as it is durable
	rounds    *timer
	hosts     *shards.Shards // nil: none is needed yet
	routing   int            // reads and writes of shards under way
	moving    bool           // a look for shards that come or go is on its way
	arranging *timer         // of the next look
	toArrange bool           // it is set
	syncing   bool           // a sync of the disk is due
	writes    uint64         // begun here
	right     right
	routines  []*routine
}

func newNode(c *Cluster, number int) *Node {
	n := &Node{cluster: c, world: c.World, number: number, tickets: map[int]string{}, stray: map[int]bool{}, short: map[int]bool{}, flipped: map[dbadapter.Range]bool{}}
	n.id = node.IDOf(keyOf(number).Public().(ed25519.PublicKey))
	n.wall.world = c.World
	n.insert(sim.NewDisk(c.World, number))
	return n
}

func (n *Node) insert(d *sim.Disk) {
	n.disk = d
	d.Before = n.crash.count
}

// purposes maps a node's uses of randomness to those of the simulation.
var purposes = [node.Purposes]sim.Purpose{
	node.ForNonce: sim.ForNonce, node.ForIncarnation: sim.ForIncarnation, node.ForToken: sim.ForToken, node.ForSecret: sim.ForNonce,
	node.ForPush: sim.ForPush, node.ForInterval: sim.ForInterval, node.ForRest: sim.ForRest, node.ForBusy: sim.ForBusy,
}

// Start starts a node that is down. It stays down where its data is damaged.
func (n *Node) Start() error {
	if n.process != nil || n.damage != nil {
		return n.damage
	}
	c := n.cluster
	n.starts++
	p := &process{node: n}
	p.shard = p.bare()
	config := node.Config{
		ID: n.id, Verify: c.verify, Now: n.wall.now, Elapsed: n.world.Now, Interval: c.Every, Bulk: c.Bulk, Weaken: c.weaken,
		Sign:    func(message []byte) ([]byte, error) { return ed25519.Sign(keyOf(n.number), message), nil },
		Random:  p.draw,
		Budget:  reconcile.NewBudget(syncMemory),
		Places:  syncing.Places{Sessions: sessions, PerPeer: sessionsPerPeer, Greetings: greetings},
		Refused: func(err error) { c.Watch.Refused(n.number, err) },
		// Sets are small here: a summary is kept often, so that crashes meet it.
		Summaries: node.Summaries{Least: -1, Every: 64, Idle: 8, Rest: c.Every},
	}
	if c.Push {
		config.Push, config.Pushable = push.Config{On: true}, p.pushable
	}
	config.Relisted = func(ns *node.Namespace) {
		if !p.cut() {
			return
		}
		p.after(0, func() { // its locks are held
			if ns.Seeks() {
				p.round()
			}
		})
		p.moveSoon()
	}
	p.core = node.New(config)
	err := p.load()
	n.world.Note("start", n.number, boolean(err == nil), nil)
	if errors.Is(err, dbadapter.ErrCorrupt) {
		n.damage = err
	}
	if err != nil {
		c.Watch.Refused(n.number, err)
		return err
	}
	n.process = p
	c.History.Started(n.number, p.everything())
	for _, s := range n.Shards() {
		c.History.Holds(n.number, s)
	}
	p.background()
	p.watchAll()
	return nil
}

func (p *process) draw(purpose node.Purpose) uint64 {
	p.drawn[purpose]++
	n := p.node
	return n.world.Draw(purposes[purpose], uint64(n.number), n.starts, p.drawn[purpose])
}

// load opens the namespace, if the node has joined it.
func (p *process) load() error {
	b := p.node.disk.File(stateFile).Bytes()
	if len(b) == 0 {
		return nil
	}
	s, err := node.DecodeState(b)
	if err != nil {
		return err
	}
	return p.open(s)
}

// Crash ends the process and the machine at once: the disk keeps the first of the
// unsynced writes, or none.
func (n *Node) Crash() {
	if n.process == nil {
		return
	}
	n.world.Note("crash", n.number, 0, nil)
	n.end(true)
	n.disk.PowerCut()
}

// Stop ends the process in order, after the work that it has begun.
func (n *Node) Stop() {
	n.guard(func() {
		if p := n.process; p != nil {
			p.flush()
			p.rest()
			n.world.Note("stop", n.number, 0, nil)
			n.end(false)
		}
	})
}

// end drops the process.
func (n *Node) end(silently bool) {
	p := n.process
	n.process = nil
	for _, g := range n.programs {
		g.at = nil
	}
	n.crash.disarm()
	for len(p.sessions) > 0 {
		_, _ = p.sessions[0].leave(ErrDown) // nothing is left to tell
	}
	for _, c := range p.conns {
		if silently && n.world.Draw(sim.ForReset, uint64(n.number), n.starts, uint64(c.remote))%2 == 0 {
			c.stream.Vanish()
		} else {
			c.stream.Reset()
		}
	}
	for _, r := range p.routines {
		r.end()
	}
	if p.ns != nil {
		_ = p.ns.Close() // it is in memory
	}
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
	n.old, n.liar, n.misleads = old, false, nil
	return n.Start()
}

// logs numbers what gives a node's change logs their ids: its disk, the copy of it, and how
// many disks have had new ones.
type logs struct{ disk, copied, made uint64 }

// logID is the id of the change log of the node's records, or of that of its control
// namespace (1).
func (n *Node) logID(which uint64) dbadapter.LogID {
	return dbadapter.LogID(n.world.Draw(sim.ForLog, uint64(n.number), n.logs.disk, which) | 1) // 0 stands for no log
}

// Copy keeps a copy of the disk's synced bytes.
func (n *Node) Copy() { n.copied, n.logs.copied = n.disk.Copy(), n.logs.disk }

// HasCopy reports whether a copy was kept.
func (n *Node) HasCopy() bool { return n.copied != nil }

// Restore gives a node that is down another machine with the copy of its disk, and starts
// it. What the old machine's kernel had not sent yet is lost. A greeting that comes after
// one of the restored node would be taken for that of a twin. Either the files are as they
// were, and nothing in them tells the node of it. Or the program put them back, and gave
// the change logs other ids, which tell it.
func (n *Node) Restore(byProgram bool) error {
	n.cluster.Net.Replace(n.number)
	n.insert(n.copied.Copy())
	n.damage = nil
	if n.logs.disk = n.logs.copied; byProgram {
		n.logs.made++
		n.logs.disk = n.logs.made
	} else {
		n.cluster.watchAnew(n)
	}
	return n.Start()
}

// Flip turns a synced bit of the disk; see sim.Disk.
func (n *Node) Flip(at uint64) { n.disk.Flip(at) }

// Fill makes the disk full, or gives it room again.
func (n *Node) Fill(full bool) { n.disk.Full = full }

// Freeze stops the process for a time.
func (n *Node) Freeze(d time.Duration) { n.frozen = max(n.frozen, n.world.Now()+d) }

// Frozen is the time until which the process is frozen.
func (n *Node) Frozen() time.Duration { return n.frozen }

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}
