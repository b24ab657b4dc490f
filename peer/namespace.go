package peer

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/replica"
)

// Policy is what the members of a namespace agree on; it is fixed when the
// namespace is made and handed over with an invitation. The zero value is the
// safe one.
type Policy struct {
	// Unsigned turns signatures off, their making and their checking: a
	// namespace whose members trust one another not to forge. Records are
	// then accepted from members that may write themselves, only.
	Unsigned bool
	// MaxSkew is how far a version may be ahead of the receiver's clock.
	// 0 means DefaultMaxSkew.
	MaxSkew time.Duration
}

// Namespace is a set of records that this node keeps equal with the other
// members'. All its methods may be called from several goroutines. Byte slices
// passed in may be reused after the call; those returned are the caller's.
type Namespace struct {
	node   *Node
	keys   reconcile.Keys
	folder string // of its state; empty: in memory only

	ctx    context.Context // over when the namespace closes
	cancel context.CancelFunc
	gate   *gate // whoever uses store is inside

	store dbadapter.Namespace
	live  *replica.Live
	clock *hlc.Clock
	// incarnation is that of all versions that this opening makes. A namespace
	// that is dropped and joined again has forgotten what its clock said.
	incarnation uint64

	rejected rejections
	asides   asides
	openings openings

	// commits keeps the making of a version and its commit together: nothing
	// later than the version may be committed in between, or the write would be
	// lost as soon as it is made. Single writes share it, and each other's
	// fsync; what commits a batch, or versions from elsewhere, has it alone.
	commits  sync.RWMutex
	growing  sync.Mutex // held while live is being lengthened
	updating sync.Mutex // serialises changes of roster
	roster   atomic.Pointer[roster]
}

// openNamespace opens a namespace's records and rebuilds its sketch by a scan.
func (n *Node) openNamespace(ctx context.Context, secret dbadapter.Secret, s *state) (_ *Namespace, err error) {
	roster, err := newRoster(s)
	if err != nil {
		return nil, err
	}
	ns := &Namespace{
		node:  n,
		keys:  reconcile.DeriveKeys(secret),
		gate:  newGate(),
		clock: hlc.New(n.now),

		incarnation: newIncarnation(),
	}
	ns.roster.Store(roster)
	if n.dir != "" {
		ns.folder = namespaceDir(n.dir, ns.keys.ID)
	}
	ns.live = replica.New(ns.keys)
	if ns.store, err = n.store.Namespace(ctx, ns.keys.ID, ns.keys.Hasher, ns.live.Observe); err != nil {
		return nil, fmt.Errorf("open namespace %s: %w", s.Name, err)
	}
	if err := ns.load(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open namespace %s: %w", s.Name, err), ns.store.Close())
	}
	ns.clock.Observe(hlc.Timestamp(ns.store.Latest()))
	if ahead := ns.store.Latest().Time().Sub(n.now()); ahead > s.Policy.MaxSkew {
		n.log.Warn("the newest version is ahead of this machine's clock by more than the namespace allows: what is written now gets a later one still, and others will refuse it until then",
			slog.String("ns", s.Name), slog.Duration("ahead", ahead))
	}
	ns.ctx, ns.cancel = context.WithCancel(n.ctx)
	return ns, nil
}

func (ns *Namespace) load(ctx context.Context) error {
	snap, err := ns.store.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	return ns.live.Load(ctx, snap, nil)
}

// close ends what runs in the namespace and closes its records.
func (ns *Namespace) close() error {
	ns.gate.close()
	ns.cancel()
	<-ns.gate.empty
	return ns.store.Close()
}

// enter begins a use of the namespace; ns.gate.leave ends it.
func (ns *Namespace) enter(what string) error {
	if !ns.gate.enter() {
		return fmt.Errorf("%s in %s: %w", what, ns.Name(), ErrClosed)
	}
	return nil
}

// bind makes a context that is over when the caller's is, or when the
// namespace closes.
func (ns *Namespace) bind(ctx context.Context) (context.Context, context.CancelFunc) {
	return bind(ctx, ns.ctx)
}

// bind makes a context that is over when ctx is, or when the life of what it is
// used in is: then its cause is ErrClosed.
func bind(ctx, life context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(life, func() { cancel(ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// Name is the namespace's alias on this node.
func (ns *Namespace) Name() string { return ns.roster.Load().state.Name }

// ID is the hash of the namespace's secret, by which its members know it.
func (ns *Namespace) ID() dbadapter.NamespaceID { return ns.keys.ID }

// Info describes a namespace.
type Info struct {
	Name   string
	ID     string
	Role   Role
	Policy Policy
	// Records counts what the namespace holds, tombstones included.
	Records int64
	// Digest is the sum of the records' digests; equal sets have equal ones.
	Digest   string
	Members  int
	Rejected int
	// Clock is the time of the newest version held; zero if none has been.
	Clock time.Time
}

// Info describes the namespace as it is now.
func (ns *Namespace) Info() Info {
	r := ns.roster.Load()
	digest, records, _ := ns.live.State()
	var newest time.Time
	if latest := ns.store.Latest(); latest != 0 {
		newest = latest.Time()
	}
	return Info{
		Name:     r.state.Name,
		ID:       hex.EncodeToString(ns.keys.ID[:]),
		Role:     r.byID[ns.node.self.id].Role,
		Policy:   r.policy(),
		Records:  int64(records),
		Digest:   digest.String(),
		Members:  len(r.list),
		Rejected: ns.rejected.count(),
		Clock:    newest,
	}
}
