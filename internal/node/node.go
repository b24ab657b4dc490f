package node

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/clocks"
	"github.com/syncd-io/syncd/internal/push"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/internal/signature"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
)

// Config is what a driver gives a node.
type Config struct {
	// ID is the node's own, and Sign makes signatures with its key.
	ID   ID
	Sign func(message []byte) ([]byte, error)
	// SignAll makes the signatures of several messages in less time. nil: one by one.
	SignAll func(messages [][]byte) [][]byte
	// Verify reports of each signature whether its key made it. nil: signature.VerifyAll.
	Verify func(checks []signature.Check) []bool
	// Now is the machine's wall clock: the time of versions and expiries.
	Now func() time.Time
	// Elapsed is the time since a fixed moment, which setting a clock does not
	// move. If it is nil, a session never tells its peer that it is working.
	Elapsed func() time.Duration
	// Budget lends the sessions their memory. nil: no bound.
	Budget *reconcile.Budget
	// Random gives 64 random bits for a purpose.
	Random func(Purpose) uint64
	// Each calls fn(0) … fn(k−1), in any order, and returns when all calls have.
	// nil: one after the other.
	Each func(k int, fn func(i int))
	// Turn runs fn, which keeps a processor busy for one of many single writes, once it is
	// the write's turn. nil: at once.
	Turn func(fn func())
	// Aside runs fn while a session goes on, see reconcile.Options. nil: the session
	// runs it itself.
	Aside func(fn func()) (wait func())
	// GiveWay lets others run that wait for a processor, see reconcile.Options. nil: they
	// are left to the machine's own ways.
	GiveWay func()
	// Places bounds the sessions.
	Places syncing.Places
	// Bulk says which syncs are large ones.
	Bulk syncing.Bulk
	// Interval is the mean pause between background syncs with a peer.
	Interval time.Duration
	// Weaken, in tests, takes a namespace's hasher and gives a weaker one, which
	// forces keys onto one index.
	Weaken func(dbadapter.Hasher) dbadapter.Hasher
	// Paused, if not nil, reports whether a person has paused the syncs with a peer.
	Paused func(id ID) bool
	// Moved, if not nil, is told where a member says that it can be dialled, each
	// time that this changes.
	Moved func(id ID, addrs [][]byte)
	// Refused, if not nil, is told why a record of a peer was refused.
	Refused func(error)
	// NoHost: the node is to be no host of shards. It says so in each namespace.
	NoHost bool
	// Summaries says when the live sketches are made durable.
	Summaries Summaries
	// Loaded, if not nil, is called when a namespace, or its control namespace, was
	// opened. It hears how the live sketch was brought up to date.
	Loaded func(name string, l Loading)
	// Push says how what this node writes is pushed to the other members.
	Push push.Config
	// Pushable, if not nil, is called, while locks are held, when a driver is to
	// ask Pushes of the set for a step at once. It must not wait.
	Pushable func(set *Set)
	// Relisted, if not nil, is called, while locks are held, for a namespace that
	// is cut into shards. Its list of members has changed, or the table of its
	// layout is there: a driver is to ask Arrange and Moves at once. It must not
	// wait.
	Relisted func(ns *Namespace)
	// Pushes, if not nil, reports whether a peer with which a sync has just ended
	// is one that pushes. What such a peer writes is heard of between syncs. If it
	// is nil, each peer is.
	Pushes func(id ID) bool
	// Doubted, if not nil, is called when a peer declines records of this node's
	// own writing for their time. It is called once, until the two have been equal
	// again.
	Doubted func(set *Set, by status.DeclinedBy)
}

// Purpose says what random bits are for, so that a simulator can draw those of
// two purposes independently.
type Purpose uint8

// The purposes.
const (
	ForNonce Purpose = iota
	ForIncarnation
	ForToken
	ForSecret
	ForInterval
	ForRest
	ForBusy
	ForPush
	ForSalt
	Purposes // how many there are
)

// Node decides for one node. Its methods may be called from several goroutines.
type Node struct {
	Config
	Sessions  *syncing.Sessions
	Schedule  *syncing.Schedule[*Part]
	Questions syncing.Questions // of peers

	mu    sync.RWMutex // guards what follows
	byID  map[dbadapter.NamespaceID]*Namespace
	parts map[dbadapter.NamespaceID]*Part // by their own ids

	offsets clocks.Offsets // of the peers
}

// New is a node without namespaces.
func New(c Config) *Node {
	if c.Each == nil {
		c.Each = func(k int, fn func(i int)) {
			for i := range k {
				fn(i)
			}
		}
	}
	if c.Turn == nil {
		c.Turn = func(fn func()) { fn() }
	}
	if c.Verify == nil {
		c.Verify = signature.VerifyAll
	}
	c.Summaries = c.Summaries.withDefaults()
	n := &Node{Config: c, byID: map[dbadapter.NamespaceID]*Namespace{}, parts: map[dbadapter.NamespaceID]*Part{}, Sessions: syncing.NewSessions(c.Places)}
	n.Schedule = n.newSchedule()
	return n
}

// random fills b, whose length is a multiple of 8, with random bytes.
func (n *Node) random(b []byte, p Purpose) {
	for ; len(b) >= 8; b = b[8:] {
		binary.BigEndian.PutUint64(b, n.Random(p))
	}
}

// jittered is a random time from half of d to one and a half of it. It spreads what
// many nodes do that were started together.
func (n *Node) jittered(d time.Duration, p Purpose) time.Duration {
	if d <= 0 {
		return 0
	}
	return d/2 + time.Duration(n.Random(p)%uint64(d))
}

// interval is as of now: the simulator shortens it at the end of a run.
func (n *Node) interval() time.Duration { return n.Interval }

// newSchedule is that of the node. Background syncs take half of its places, so a caller that
// asks for a sync gets one.
func (n *Node) newSchedule() *syncing.Schedule[*Part] {
	return syncing.NewSchedule[*Part](syncing.ScheduleConfig{
		Interval: n.interval, Places: n.Places.Sessions / 2,
		Jitter:     func(mean time.Duration) time.Duration { return n.jittered(mean, ForInterval) },
		JitterRest: func(mean time.Duration) time.Duration { return n.jittered(mean, ForRest) },
	})
}

// Backoff is that of a sync, or a question, which may meet a busy peer.
func (n *Node) Backoff() syncing.Backoff {
	return syncing.Backoff{Jitter: func(mean time.Duration) time.Duration { return n.jittered(mean, ForBusy) }}
}

// NewSecret draws the secret of a new namespace.
func (n *Node) NewSecret() (s dbadapter.Secret) {
	n.random(s[:], ForSecret)
	return s
}

// Namespace is the open namespace of that id, or nil.
func (n *Node) Namespace(id dbadapter.NamespaceID) *Namespace {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.byID[id]
}

// part is the open part of that id, or nil.
func (n *Node) part(id dbadapter.NamespaceID) *Part {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.parts[id]
}

// Forget removes a namespace that is being closed from the node.
func (n *Node) Forget(ns *Namespace) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.byID[ns.id] != ns {
		return
	}
	delete(n.byID, ns.id)
	for _, p := range ns.parts() {
		delete(n.parts, p.Keys.ID)
	}
}

// ClockOffset is by how much this node's clock is ahead of its peers', and how many of
// these were measured of late.
func (n *Node) ClockOffset() (own clocks.Offset, peers int) { return n.offsets.Own(n.Now()) }

// IsMember reports whether a node is a member of any namespace here.
func (n *Node) IsMember(id ID) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, ns := range n.byID {
		if ns.Members().Has(id, RoleRead) {
			return true
		}
	}
	return false
}

// ID names a node: the binary form of a libp2p peer id that holds an Ed25519
// public key.
type ID = roster.ID

// IDOf is the id of the node with that public key.
func IDOf(key ed25519.PublicKey) ID { return roster.IDOf(key) }

// Role is what a member may do. Each role may do what those before it may.
type Role = roster.Role

// The roles of a member.
const (
	RoleRead  = roster.RoleRead
	RoleWrite = roster.RoleWrite
	RoleAdmin = roster.RoleAdmin
)

// ParseRole reads a role's name.
func ParseRole(s string) (Role, error) { return roster.ParseRole(s) }

// Policy is what the members of a namespace agree on.
type Policy = roster.Policy

// Still runs fn while no namespace's state changes, so that fn can copy the states
// and the stores as of one moment. Records may be written meanwhile. fn must not
// change a state.
func (n *Node) Still(fn func() error) error {
	for _, ns := range n.namespaces() { // sorted: two callers take the locks in one order
		defer ns.Hold().Release()
		ns.saving.Lock()
		defer ns.saving.Unlock()
	}
	return fn()
}

// Tend does what has become due in the namespaces by itself, one after the other.
func (n *Node) Tend(ctx context.Context) error {
	var failed error
	for _, ns := range n.namespaces() {
		_, err := ns.Tend(ctx)
		failed = errors.Join(failed, err)
	}
	return failed
}

// Tend does what has become due in the namespace. A driver calls it with each round
// of the schedule. It may read all records.
func (ns *Namespace) Tend(ctx context.Context) (status.Swept, error) {
	failed := errors.Join(ns.renounce(ctx), ns.Expire(ctx), ns.dropFormer(ctx))
	_, _, err := ns.tendLayout(ctx)
	_, told := ns.tellShards(ctx, 0)
	failed = errors.Join(failed, err, told)
	if ns.rule != nil && len(ns.Sets()) == 0 { // it lacks nothing
		failed = errors.Join(failed, ns.Return(ctx))
	}
	var all status.Swept
	for _, set := range ns.Sets() {
		swept, err := set.tend(ctx)
		all, failed = all.Plus(swept), errors.Join(failed, err)
	}
	return all, failed
}

// namespaces are the open ones by id, so that what is done to all of them is a
// function of its input.
func (n *Node) namespaces() []*Namespace {
	n.mu.RLock()
	defer n.mu.RUnlock()
	list := make([]*Namespace, 0, len(n.byID))
	for _, ns := range n.byID {
		list = append(list, ns)
	}
	slices.SortFunc(list, func(a, b *Namespace) int { return slices.Compare(a.id[:], b.id[:]) })
	return list
}
