package model

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// Config is what all nodes of a run have in common.
type Config struct {
	Nodes int
	// Skew is how far ahead of a node's clock a version may be.
	Skew time.Duration
	// Signed says that writers sign their records.
	Signed bool
	// Every is about how often a node syncs with each other node; 0 means
	// never.
	Every time.Duration
	// Indices is how many indices keys are spread over; 0 means all.
	Indices uint64
	// Watch is told what happens.
	Watch Watcher
}

// Watcher is told what nodes do. The calls come as things happen, from the
// goroutine of the simulation.
type Watcher interface {
	// Started: the node is up again, and holds these records.
	Started(node int, records []dbadapter.Record)
	// Observed: the record is now held at the node.
	Observed(node int, r *dbadapter.Record)
	// Ended: a session is over at one of its sides.
	Ended(e *Ended)
	// Refused: something was turned down at the node, and why.
	Refused(node int, err error)
}

// Limits of nodes and sessions: those of package peer, but for a shorter
// patience with silence, which costs virtual time only.
const (
	idleTimeout     = 10 * time.Second
	sessions        = 16
	sessionsPerPeer = 4
	asideLife       = 5 * time.Minute
	busyPatience    = 15 * time.Second
	// fewNodes is up to how many every node knows every other; beyond it each
	// knows those at distances of powers of two.
	fewNodes = 12
)

// Epoch is what the clocks say when a run begins.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Cluster is all nodes of a run.
type Cluster struct {
	Config
	World    *sim.World
	Net      *sim.Net
	nodes    []*Node
	writers  map[dbadapter.WriterID]*Node
	keys     reconcile.Keys
	proven   map[[32]byte]bool // signatures that were found to fit
	settling bool              // background syncs go on at the pace of Settle
	open     int               // sessions that hold a snapshot
	last     map[[2]int]*tape  // what was sent in the last session that one began with another
}

// New makes nodes with empty disks, none of which is started.
func New(w *sim.World, net *sim.Net, c Config) *Cluster {
	cl := &Cluster{Config: c, World: w, Net: net, proven: map[[32]byte]bool{}, last: map[[2]int]*tape{}, writers: map[dbadapter.WriterID]*Node{}}
	var secret dbadapter.Secret
	binary.BigEndian.PutUint64(secret[:], w.Draw(sim.ForNonce, 1<<40, 0, 0))
	cl.keys = reconcile.DeriveKeys(secret)
	if c.Indices > 0 {
		cl.keys.Hasher = Coarse(cl.keys.Hasher, c.Indices)
	}
	for i := range c.Nodes {
		n := newNode(cl, i)
		cl.nodes = append(cl.nodes, n)
		cl.writers[n.writer] = n
	}
	return cl
}

// Node is the node of that number.
func (c *Cluster) Node(i int) *Node { return c.nodes[i] }

// Nodes are all nodes.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// Open is how many sessions have not given back what they hold.
func (c *Cluster) Open() int { return c.open }

// Keys are those of the namespace.
func (c *Cluster) Keys() reconcile.Keys { return c.keys }

// keys are the same in every run, since making them takes longer than most of
// a run.
var keys sync.Map // of int to ed25519.PrivateKey

func keyOf(node int) ed25519.PrivateKey {
	if k, ok := keys.Load(node); ok {
		return k.(ed25519.PrivateKey)
	}
	seed := sha256.Sum256(fmt.Appendf(nil, "syncd testnet node %d", node))
	k, _ := keys.LoadOrStore(node, ed25519.NewKeyFromSeed(seed[:]))
	return k.(ed25519.PrivateKey)
}

// oldVersion is what a node of an older protocol says.
const oldVersion = wire.Version - 1
