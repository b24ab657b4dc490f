package model

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/signature"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
	"github.com/syncd-io/syncd/testnet/internal/check"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// Config is the configuration that all nodes of a run share.
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
	// Ground, if not empty, is the prefix of keys that share one index.
	Ground string
	// Checksums is how many bits of a checksum tell records of one minute apart; 0: all.
	Checksums int
	// Bulk is which syncs are large ones.
	Bulk syncing.Bulk
	// Rule is how the namespace is cut into shards; nil: it is not.
	Rule *placement.Rule
	// Push says that nodes push what they write.
	Push bool
	// LogKeeps is how many changes a change log keeps at least; 0: all of a run.
	LogKeeps int
	// History is told what nodes do. With Logs it is told of their change logs, too, which
	// watches are judged by.
	History *check.History
	Logs    bool
	// Watch is called with what nodes do that the run itself judges.
	Watch Watcher
}

// The cluster calls a Watcher with what nodes do, at once and from the goroutine
// of the simulation.
type Watcher interface {
	// Observed: the record is now held at the node.
	Observed(node int, r *dbadapter.Record)
	// Answered: a node has answered another one's question.
	Answered(q *Question)
	// Left: the node has left the shard, of which it held these records.
	Left(node, shard int, records []dbadapter.Record)
	// Ended: a session is over at one of its sides.
	Ended(e *Ended)
	// Refused: the node refused a write, a record or a session, for that reason.
	Refused(node int, err error)
	// Unwatched: the node has ended a program's watch. Where its cursor has expired, reaches
	// reports whether the change log, which has that id, goes back to a change.
	Unwatched(node int, program string, err error, log dbadapter.LogID, reaches func(after uint64) bool)
}

// Bounds of the driver. A node waits for a silent peer for a shorter time than on
// a network, since the wait costs virtual time only.
const (
	idleTimeout     = 10 * time.Second
	helloTimeout    = 10 * time.Second
	joinTimeout     = 20 * time.Second
	sessions        = 16
	sessionsPerPeer = 4
	greetings       = 64
	syncMemory      = 1 << 30
	// fewNodes is the most nodes of a run in which every node knows the address of every
	// other, shards or not. In larger runs without shards each knows those at distances of
	// powers of two.
	fewNodes = 12
	// auditLook is how long after a sync a node looks whether that calls for an audit.
	auditLook = time.Second
)

// Name is the namespace's name on the node that creates it.
const Name = "testnet"

// Epoch is what the clocks say when a run begins.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Cluster is all nodes of a run.
type Cluster struct {
	Config
	World   *sim.World
	Net     *sim.Net
	Watched int // events that programs were told by watches
	nodes   []*Node
	byID    map[node.ID]*Node
	keys    reconcile.Keys
	proven  map[[32]byte]bool                         // signatures that were found to fit
	open    int                                       // sessions that hold a snapshot
	pushed  uint64                                    // messages, by all nodes
	resting bool                                      // waits go no further
	shards  map[dbadapter.NamespaceID]placement.Shard // by the ids of their sets
	hashers []dbadapter.Hasher                        // of the shards
	last    map[[2]int]*tape                          // what was sent in the last session that one began with another
}

// New makes nodes with empty disks; all are down.
func New(w *sim.World, net *sim.Net, c Config) *Cluster {
	cl := &Cluster{Config: c, World: w, Net: net, proven: map[[32]byte]bool{}, last: map[[2]int]*tape{}, byID: map[node.ID]*Node{}}
	var secret dbadapter.Secret
	binary.BigEndian.PutUint64(secret[:], w.Draw(sim.ForNonce, 1<<40, 0, 0))
	for i := range c.Nodes {
		n := newNode(cl, i)
		cl.nodes = append(cl.nodes, n)
		cl.byID[n.id] = n
	}
	cl.keys = reconcile.DeriveKeys(secret, []byte(cl.nodes[0].id))
	cl.keys.Hasher = cl.weaken(cl.keys.Hasher)
	if c.Rule != nil {
		value, err := c.Rule.Value()
		if err != nil {
			panic(err) // the plan was checked
		}
		cl.numberShards(slices.Concat([]byte(cl.nodes[0].id), value))
	}
	return cl
}

// Index is the index of a key.
func (c *Cluster) Index(key []byte) dbadapter.Index { return c.keys.Hasher.Index(key) }

// IndexIn is the index of a key in the set of a shard.
func (c *Cluster) IndexIn(shard int, key []byte) dbadapter.Index {
	if c.Rule == nil {
		return c.Index(key)
	}
	return c.hashers[shard].Index(key)
}

func (c *Cluster) weaken(h dbadapter.Hasher) dbadapter.Hasher {
	if c.Indices == 0 && c.Ground == "" && c.Checksums == 0 {
		return h
	}
	return &weak{h, c.Indices, c.Ground, c.Checksums}
}

// Found makes node 0 create the namespace. If all is set, node 0 then invites every
// other node in turn. A node learns the members of the moment when it joins, and of
// later ones by syncs. All nodes must be up.
func (c *Cluster) Found(all bool) error {
	if err := c.nodes[0].create(); err != nil {
		return err
	}
	if !all {
		return nil
	}
	for i := 1; i < len(c.nodes); i++ {
		ticket, err := c.nodes[0].invite(0)
		if err == nil {
			err = c.nodes[i].redeem(ticket)
		}
		if err != nil {
			return fmt.Errorf("node %d joins: %w", i, err)
		}
	}
	return nil
}

// Node is the node of that number.
func (c *Cluster) Node(i int) *Node { return c.nodes[i] }

// Nodes are all nodes.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// Open is how many sessions still hold a snapshot or a place.
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

// verify reports of each signature whether its key made it. It checks each valid
// signature once a run, for all nodes.
func (c *Cluster) verify(checks []signature.Check) []bool {
	valid := make([]bool, len(checks))
	var fresh []signature.Check
	var sums [][32]byte
	var places []int // of fresh in checks
	for i, k := range checks {
		sum := sha256.Sum256(slices.Concat(k.Key, k.Signature, k.Message))
		if valid[i] = c.proven[sum]; !valid[i] {
			fresh, sums, places = append(fresh, k), append(sums, sum), append(places, i)
		}
	}
	for i, ok := range signature.VerifyAll(fresh) {
		if ok {
			valid[places[i]], c.proven[sums[i]] = true, true
		}
	}
	return valid
}

// oldVersion is the version in the Hello of a node of an older protocol.
const oldVersion = wire.Version - 1

// Settle makes all nodes sync at about this interval from now on, and ends their
// rests after failures, and that of their waits.
func (c *Cluster) Settle(every time.Duration) {
	c.Every, c.resting = every, false
	for _, n := range c.nodes {
		if p := n.process; p != nil {
			p.core.Interval = every
			p.core.Schedule.Wake()
			p.background()
		}
	}
}

// Rest ends all background syncs that are not under way, all pushes and all waits.
func (c *Cluster) Rest() {
	c.Push, c.resting = false, true
	for _, n := range c.nodes {
		if n.process != nil {
			n.process.rounds.stop()
		}
	}
}

// Close ends all processes, and with them what their sessions hold.
func (c *Cluster) Close() {
	for _, n := range c.nodes {
		if n.process != nil {
			n.end(true)
		}
	}
}

// errNoNamespace: the node has not joined.
var errNoNamespace = errors.New("the node is not a member of the namespace")
