package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/replica"
)

// Namespace is a set of records of this node, with what the node has decided
// about it.
type Namespace struct {
	Keys  reconcile.Keys
	Store dbadapter.Namespace
	Live  *replica.Live

	node  *Node
	self  dbadapter.WriterID // under which this node's versions name it
	save  func(*State) error
	clock *hlc.Clock
	// incarnation is that of all versions that this opening makes. A namespace
	// that is dropped and joined again has forgotten what its clock said.
	incarnation uint64

	// commits keeps the making of a version and its commit together: if a later
	// version were committed in between, the write would be lost as soon as it is
	// made. Single writes share it, and each other's fsync; what commits a batch,
	// or versions from elsewhere, has it alone.
	commits  sync.RWMutex
	growing  sync.Mutex // held while the live sketch is being lengthened
	updating sync.Mutex // serialises changes of members; guards over
	over     bool       // the namespace is being dropped: its state is not this one's any more
	members  atomic.Pointer[Members]

	rejected rejections
	declined declined
	openings openings
	twins    twins
}

// Opening is what a driver gives to open a namespace.
type Opening struct {
	Secret dbadapter.Secret
	State  *State
	// Store opens the records; the store must tell observe of each commit.
	Store func(ctx context.Context, id dbadapter.NamespaceID, h dbadapter.Hasher, observe func([]dbadapter.Change)) (dbadapter.Namespace, error)
	// Save makes a state durable before it returns.
	Save func(*State) error
}

// Open opens a namespace's records and rebuilds its live sketch by a scan.
func (n *Node) Open(ctx context.Context, o Opening) (_ *Namespace, err error) {
	members, err := newMembers(o.State)
	if err != nil {
		return nil, err
	}
	self, err := n.ID.Writer()
	if err != nil {
		return nil, err
	}
	ns := &Namespace{
		self: self,
		Keys: reconcile.DeriveKeys(o.Secret, o.State.Creator),
		node: n, save: o.Save, clock: hlc.New(n.Now), incarnation: n.Random(ForIncarnation),
	}
	if n.Weaken != nil {
		ns.Keys.Hasher = n.Weaken(ns.Keys.Hasher)
	}
	ns.members.Store(members)
	ns.Live = replica.New(ns.Keys)
	if ns.Store, err = o.Store(ctx, ns.Keys.ID, ns.Keys.Hasher, ns.Live.Observe); err != nil {
		return nil, fmt.Errorf("open namespace %s: %w", o.State.Name, err)
	}
	if err := ns.load(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open namespace %s: %w", o.State.Name, err), ns.Store.Close())
	}
	ns.clock.Observe(hlc.Timestamp(ns.Store.Latest()))
	n.mu.Lock()
	defer n.mu.Unlock()
	n.byID[ns.Keys.ID] = ns
	return ns, nil
}

func (ns *Namespace) load(ctx context.Context) error {
	snap, err := ns.Store.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	return ns.Live.Load(ctx, snap, nil)
}

// Members is the list of members as it stands now.
func (ns *Namespace) Members() *Members { return ns.members.Load() }

// Ahead is by how much the next version would be further ahead of the machine's
// clock than the namespace allows; 0 where it would not.
func (ns *Namespace) Ahead() time.Duration {
	allowed := ns.node.Now().Add(ns.Members().Policy().MaxSkew)
	return max(0, ns.clock.Latest().Time().Sub(allowed))
}

// update changes the namespace's state: fn edits a copy, which becomes durable
// before any decision rests on it.
func (ns *Namespace) update(fn func(s *State) error) error {
	ns.updating.Lock()
	defer ns.updating.Unlock()
	if ns.over {
		return dbadapter.ErrClosed
	}
	next := ns.Members().state.clone()
	if err := fn(next); err != nil {
		return err
	}
	if err := next.validate(); err != nil {
		return err
	}
	members, err := newMembers(next)
	if err != nil {
		return err
	}
	if err := ns.save(next); err != nil {
		return fmt.Errorf("save the members of %s: %w", next.Name, err)
	}
	ns.members.Store(members)
	return nil
}

// Abandon begins a drop: mark makes it durable, and no change of the members is
// saved from then on, because the folder may be another namespace's by then.
func (ns *Namespace) Abandon(mark func() error) error {
	ns.updating.Lock()
	defer ns.updating.Unlock()
	if err := mark(); err != nil {
		return err
	}
	ns.over = true
	ns.node.Forget(ns)
	return nil
}
