package peer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/replica"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// SyncProtocol is the libp2p protocol of a sync; docs/PROTOCOL.md describes
// what travels.
const SyncProtocol protocol.ID = "/syncd/sync/1.0.0"

// Report tells what a sync found, moved and proved.
type Report = reconcile.Report

// Direction says which way records may go.
type Direction = wire.Direction

// The directions of a sync.
const (
	Both = wire.Both
	Pull = wire.Pull
	Push = wire.Push
)

// Method is the way in which a sync finds the differences.
type Method = wire.Method

// The methods of a sync.
const (
	// MethodAuto leaves the choice to the nodes.
	MethodAuto = wire.MethodAuto
	// MethodSketch finds the differences by coded cells.
	MethodSketch = wire.MethodSketch
	// MethodAll sends everything.
	MethodAll = wire.MethodAll
	// MethodSame stands in reports: both sides held the same.
	MethodSame = wire.MethodSame
)

// SyncOptions says what to sync and how. The zero value syncs all, both ways.
type SyncOptions struct {
	// Prefix narrows the sync to the keys that begin with it. Such a sync is
	// sketched by a scan of those keys.
	Prefix []byte
	// Direction of the records. Default: Both.
	Direction Direction
	// Method of finding the differences. Default: MethodAuto.
	Method Method
	// DryRun finds the differences and changes nothing.
	DryRun bool
	// Progress, if not nil, is called with the report so far, from one
	// goroutine, after each message. It must be quick.
	Progress func(Report)
}

func (o *SyncOptions) validate() error {
	switch {
	case o.Direction > Push:
		return fmt.Errorf("direction %v: want both, pull or push", o.Direction)
	case o.Method > MethodAll:
		return fmt.Errorf("method %v: want auto, sketch or all", o.Method)
	case len(o.Prefix) > dbadapter.MaxKey:
		return fmt.Errorf("%w: the prefix has %d bytes; a key has at most %d", ErrLimit, len(o.Prefix), dbadapter.MaxKey)
	}
	return nil
}

// Diff finds what differs and forecasts what a sync would move; it changes
// nothing on either side. It is Sync with DryRun.
func (ns *Namespace) Diff(ctx context.Context, id ID, o SyncOptions) (Report, error) {
	o.DryRun = true
	return ns.Sync(ctx, id, o)
}

// Sync makes this node's records and the peer's equal. The peer must be a
// member here, and this node one there. The report is meaningful beside an
// error: what was applied stays.
//
// Two nodes that begin a sync with one another at once do one of the two: the
// other waits for it and then finds little to do. ErrBusy says that this took
// too long.
func (ns *Namespace) Sync(ctx context.Context, id ID, o SyncOptions) (Report, error) {
	report := Report{Namespace: ns.Name(), Peer: id.String(), StepsMS: map[string]float64{}}
	what := "sync"
	if o.DryRun {
		what = "diff"
	}
	fail := func(err error) (Report, error) {
		return report, fmt.Errorf("%s %s with %s: %w", what, ns.Name(), id, err)
	}
	if err := o.validate(); err != nil {
		return fail(err)
	}
	if err := ns.enter(what); err != nil {
		return report, err
	}
	defer ns.gate.leave()
	ctx, cancel := ns.bind(ctx)
	defer cancel()
	// Before anything leaves: is it a member?
	if !ns.roster.Load().has(id, RoleRead) || id == ns.node.self.id {
		return fail(fmt.Errorf("%w: it is not another member of this namespace here; invite it, or join at its place", ErrDenied))
	}
	again := backoff.NewExponentialBackOff()
	again.InitialInterval = 50 * time.Millisecond
	last, err := backoff.Retry(ctx, func() (Report, error) {
		var err error
		report, err = ns.syncOnce(ctx, id, o)
		if err != nil && !errors.Is(err, ErrBusy) {
			err = backoff.Permanent(err)
		}
		return report, err
	}, backoff.WithBackOff(again), backoff.WithMaxElapsedTime(busyPatience))
	if err != nil {
		return fail(ns.explain(ctx, err))
	}
	return last, nil
}

// busyPatience is for how long a sync is tried again with a busy peer.
const busyPatience = 15 * time.Second

// explain replaces the error of a cut stream by what cut it, and says what to
// do about the others.
func (ns *Namespace) explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	switch {
	case errors.Is(err, reconcile.ErrLimit):
		return fmt.Errorf("%w: %w", ErrLimit, err)
	case errors.Is(err, ErrDenied):
		return fmt.Errorf("%w: to that node this one is no member, or the namespace is not there; ask for an invitation", err)
	}
	return err
}

// syncOnce begins one sync.
func (ns *Namespace) syncOnce(ctx context.Context, id ID, o SyncOptions) (Report, error) {
	n := ns.node
	report := Report{Namespace: ns.Name(), Peer: id.String(), StepsMS: map[string]float64{}}
	release, err := n.sessions.begin(ctx)
	if err != nil {
		return report, err
	}
	defer release()
	if err := n.dial(ctx, id, nil); err != nil {
		return report, err
	}
	if !o.DryRun {
		defer n.sessions.calling(ns.keys.ID, id)()
	}
	return ns.converse(ctx, sides{
		remote: id, prefix: o.Prefix, progress: o.Progress, dry: o.DryRun,
		stream: func() (*conversation, error) {
			opening, cancel := context.WithTimeout(ctx, n.limits.DialTimeout)
			defer cancel()
			stream, err := n.host.NewStream(opening, id, SyncProtocol)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
			}
			return newConversation(stream, n.limits), nil
		},
		session: func(open func() (reconcile.Replica, error), opts reconcile.Options) (*reconcile.Session, error) {
			set, err := open()
			if err != nil {
				return nil, err
			}
			opts.Direction, opts.Method, opts.Prefix, opts.DryRun = o.Direction, o.Method, o.Prefix, o.DryRun
			if len(o.Prefix) == 0 {
				opts.FirstCells = ns.openings.cells(id)
			}
			return reconcile.Initiate(set, opts), nil
		},
	})
}

// open opens the set of records that a sync is about. Its scans call tick.
func (ns *Namespace) open(ctx context.Context, prefix []byte, tick func() error) (reconcile.Replica, func() error, error) {
	if len(prefix) > 0 {
		r, err := replica.OpenPrefix(ctx, ns.store, ns.keys, prefix, tick)
		if err != nil {
			return nil, nil, err
		}
		return r, r.Close, nil
	}
	if err := ns.grow(ctx, tick); err != nil {
		return nil, nil, err
	}
	r, err := ns.live.Snapshot(ctx, ns.store, tick)
	if err != nil {
		return nil, nil, err
	}
	return r, r.Close, nil
}

// grow lengthens the live sketch where the namespace has outgrown it. One sync
// does so at a time; the others make do with the shorter one.
func (ns *Namespace) grow(ctx context.Context, tick func() error) error {
	if !ns.growing.TryLock() {
		return nil
	}
	defer ns.growing.Unlock()
	grown, err := ns.live.Grow(ctx, ns.store, tick)
	if errors.Is(err, reconcile.ErrBusy) {
		return nil // too much was written meanwhile; the next sync tries again
	}
	if grown {
		ns.node.log.Info("the live sketch has grown", logNamespace(ns), slog.Int("cells", ns.live.Cells()))
	}
	return err
}

// sides is what differs between the two sides of a sync.
type sides struct {
	remote   ID
	prefix   []byte
	incoming bool
	dry      bool
	progress func(Report) // may be nil
	// stream opens the stream, or gives the one that is open.
	stream func() (*conversation, error)
	// session begins the session, which opens the replica: of this node's own
	// syncs before the stream, since a scan may take longer than a peer waits
	// for a Hello; of a peer's after its proof.
	session func(open func() (reconcile.Replica, error), opts reconcile.Options) (*reconcile.Session, error)
}

// converse runs one side of a sync, and accounts for it.
func (ns *Namespace) converse(ctx context.Context, s sides) (report Report, err error) {
	n := ns.node
	watch := newStopwatch(n, ns, s.remote)
	n.sessions.running.Add(1)
	finish := func(r Report) Report {
		r.Namespace, r.Peer = ns.Name(), s.remote.String()
		r.DurationMS, r.StepsMS = watch.read()
		return r
	}
	defer func() {
		n.sessions.running.Add(-1)
		watch.stop()
		report = finish(report)
		n.ended(SyncRecord{Time: n.now().UTC(), Incoming: s.incoming, DryRun: s.dry, Report: report}, err)
	}()

	watch.enter(reconcile.StepSketch)
	var session *reconcile.Session
	tick := func() error {
		if session == nil {
			return nil
		}
		return session.Tick()
	}
	done := func() error { return nil }
	open := func() (set reconcile.Replica, err error) {
		var closing func() error
		if set, closing, err = ns.open(ctx, s.prefix, tick); err == nil {
			done = closing
		}
		return set, err
	}
	defer func() {
		if closed := done(); err == nil {
			err = closed
		}
	}()
	opts := reconcile.Options{
		Keys: ns.keys, Self: []byte(n.self.id), Remote: []byte(s.remote), Admit: ns.door(ctx, s.remote),
		Enter: watch.enter, Declined: ns.asides.get(s.remote, n.now()), Budget: n.budget,
		Elapsed: func() time.Duration { return time.Since(watch.start) },
	}
	rand.Read(opts.Nonce[:]) // never fails (crypto/rand)
	if session, err = s.session(open, opts); err != nil {
		return report, err
	}
	defer session.Close()
	talk, err := s.stream()
	if err != nil {
		return report, err
	}
	err = talk.run(ctx, session, func(r Report) {
		if s.progress != nil {
			s.progress(finish(r))
		}
	})
	report = session.Report()
	if err == nil {
		if len(s.prefix) == 0 && report.Method != MethodAll {
			ns.openings.note(s.remote, report.Differences())
		}
		if err := n.learnAddrs(s.remote); err != nil {
			n.log.Warn("the addresses of a peer could not be saved", logPeer(s.remote), logError(err))
		}
	}
	return report, err
}
