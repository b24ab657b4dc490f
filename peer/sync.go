package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/machine"
	"github.com/syncd-io/syncd/internal/metrics"
	"github.com/syncd-io/syncd/internal/netio/stream"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// syncProtocol is the libp2p protocol of a sync; docs/protocol describes
// what travels.
const syncProtocol protocol.ID = "/syncd/sync/1.0.0"

// SyncOptions says what to sync and how. The zero value syncs all, both ways.
type SyncOptions struct {
	// Prefix narrows the sync to the keys that begin with it. Such a sync is
	// sketched by a scan of those keys.
	Prefix []byte
	// Direction of the records. Default: wire.Both.
	Direction wire.Direction
	// Method of finding the differences. Default: wire.MethodAuto.
	Method wire.Method
	// DryRun finds the differences and changes nothing.
	DryRun bool
	keys   *syncing.KeyList // of DiffKeys
	// Progress, if not nil, is called with the report so far after each message, one
	// call at a time. It must be quick.
	Progress func(reconcile.Report)
}

// ask is what the options say to the node's decisions.
func (o *SyncOptions) ask() (syncing.Ask, error) {
	switch {
	case o.Direction > wire.Push:
		return syncing.Ask{}, fmt.Errorf("%w: direction %v: want both, pull or push", ErrInvalid, o.Direction)
	case o.Method > wire.MethodAll:
		return syncing.Ask{}, fmt.Errorf("%w: method %v: want auto, sketch or all", ErrInvalid, o.Method)
	case len(o.Prefix) > dbadapter.MaxKey:
		return syncing.Ask{}, fmt.Errorf("%w: the prefix has %d bytes; a key has at most %d", ErrLimit, len(o.Prefix), dbadapter.MaxKey)
	}
	return syncing.Ask{Prefix: o.Prefix, Direction: o.Direction, Method: o.Method, DryRun: o.DryRun, Keys: o.keys}, nil
}

// Diff finds what differs and forecasts what a sync would move; it changes
// nothing on either side. It is Sync with DryRun. DiffKeys names the keys.
func (ns *Namespace) Diff(ctx context.Context, id ID, o SyncOptions) (reconcile.Report, error) {
	o.DryRun = true
	return ns.Sync(ctx, id, o)
}

// Sync makes this node's records and the peer's equal. The peer must be a member here,
// and this node one there. Where the two have different lists of members, these are
// made equal first. The report is meaningful even with an error: what was applied stays.
// ErrRejected says that one side declined records of the other, and ErrNotVerified that
// the sets could not be proved equal. A dry run, and a sync of one direction, do not
// promise that.
//
// Two nodes that begin a sync with one another at once do one of the two. The other one
// waits for it and then finds little to do. ErrBusy says that this took too long.
func (ns *Namespace) Sync(ctx context.Context, id ID, o SyncOptions) (reconcile.Report, error) {
	all := ns.with(id)
	if ns.core.Rule() != nil {
		return ns.syncAll(ctx, id, o, all)
	}
	return all[0].sync(ctx, id, o)
}

// sync is Sync of one shard.
func (sh *shard) sync(ctx context.Context, id ID, o SyncOptions) (reconcile.Report, error) {
	return sh.ns.sync(ctx, sh, id, o)
}

// sync syncs a shard, or where that is nil, the list of members.
func (ns *Namespace) sync(ctx context.Context, sh *shard, id ID, o SyncOptions) (reconcile.Report, error) {
	report := reconcile.Report{Namespace: ns.Name(), Peer: id.String(), StepsMS: map[string]float64{}}
	what := "sync"
	if o.DryRun {
		what = "diff"
	}
	fail := func(err error) (reconcile.Report, error) {
		return report, fmt.Errorf("%s %s with %s: %w", what, ns.Name(), id, err)
	}
	ask, err := o.ask()
	if err != nil {
		return fail(err)
	}
	if err := ns.enter(what); err != nil {
		return report, err
	}
	defer ns.gate.leave()
	ctx, cancel := bind(ctx, ns.life(sh))
	defer cancel()
	if err := ns.core.MayCall(node.ID(id)); err != nil {
		return fail(ns.explain(ctx, err))
	}
	ctx, end, err := ns.engage(ctx, id)
	if err != nil {
		return fail(err)
	}
	defer end()
	begun := time.Now()
	c := &call{ns: ns, shard: sh, part: &ns.core.Control, remote: id}
	if sh != nil {
		c.part = &sh.set.Part
	}
	done, err := c.part.Plan(node.ID(id), ask).Run(ctx, c, o.Progress)
	if done.Peer != "" {
		report = done
	}
	if report.Parts > 0 {
		report.DurationMS = metrics.Milliseconds(time.Since(begun)) // some ran at once
	}
	ns.node.finished(&report, o.DryRun, err)
	if err != nil {
		return fail(ns.explain(ctx, err))
	}
	return report, nil
}

// call is a sync that this node has begun.
type call struct {
	ns      *Namespace
	shard   *shard // nil: the list of members is synced
	part    *node.Part
	remote  ID
	running sync.WaitGroup
}

// Converse holds a conversation, and begins it again on a new connection where that of before
// is stale.
func (c *call) Converse(ctx context.Context, a syncing.Ask, heard func(reconcile.Report)) (reconcile.Report, error) {
	before := c.ns.node.host.Network().ConnsToPeer(c.remote)
	report, err := c.once(ctx, a, heard)
	if stale(before, &report, err) {
		return c.once(ctx, a, heard)
	}
	return report, err
}

func (c *call) Backoff() syncing.Backoff { return c.ns.node.core.Backoff() }

func (c *call) Elapsed() time.Duration { return c.ns.node.awake.Elapsed() }

func (c *call) Sleep(ctx context.Context, d time.Duration) error { return machine.Sleep(ctx, d) }

func (c *call) Go(ctx context.Context, f func(ctx context.Context)) {
	c.running.Go(func() { f(ctx) })
}

func (c *call) Wait(context.Context) { c.running.Wait() }

// stale reports whether a sync failed because the peer had left a connection that was
// there before. The peer has restarted, or closed the connection a moment ago, and this
// node learns of it by writing. The peer has answered nothing, so that the sync can be
// begun again on a new connection.
func stale(before []network.Conn, r *reconcile.Report, err error) bool {
	return r.WireBytesReceived == 0 && left(before, err)
}

// left reports whether what failed may have done so because the peer had left one of the
// connections of before.
func left(before []network.Conn, err error) bool {
	return errors.Is(err, ErrUnreachable) && slices.ContainsFunc(before, network.Conn.IsClosed)
}

// explain replaces the error of a cut stream by what cut it, and makes a limit of the
// session one of this package. What a sync has waited for until it was cut stays.
func (ns *Namespace) explain(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case cause != nil && errors.Is(err, ErrBusy):
		return fmt.Errorf("%w: %w", err, cause)
	case cause != nil:
		return cause
	}
	if errors.Is(err, reconcile.ErrLimit) {
		return fmt.Errorf("%w: %w", ErrLimit, err)
	}
	return err
}

// once begins a conversation.
func (c *call) once(ctx context.Context, ask syncing.Ask, heard func(reconcile.Report)) (reconcile.Report, error) {
	ns, id, n := c.ns, c.remote, c.ns.node
	report := reconcile.Report{Namespace: ns.Name(), Peer: id.String(), StepsMS: map[string]float64{}}
	leave, err := n.places.Take(ctx, id)
	if err != nil {
		return report, err
	}
	defer leave()
	if err := n.host.Dial(ctx, id, nil); err != nil {
		return report, err
	}
	defer c.part.Call(node.ID(id), ask)()
	return ns.converse(ctx, side{
		ask: ask, shard: c.shard, remote: id, progress: heard,
		begin: func(enter func(reconcile.Step)) (*node.Conversation, error) {
			return c.part.Initiate(ctx, node.ID(id), ask, enter)
		},
		stream: func() (*stream.Carrier, error) {
			s, err := n.host.Open(ctx, id, syncProtocol)
			if err != nil {
				return nil, err
			}
			o := n.carrying()
			o.Calls = true
			return stream.New(s, o), nil
		},
	})
}

// side is what differs between the two sides of a sync.
type side struct {
	ask      syncing.Ask
	shard    *shard // nil: it is about the list of members alone
	remote   ID
	incoming bool
	by       network.Conn           // of an incoming one
	progress func(reconcile.Report) // may be nil
	begin    func(enter func(reconcile.Step)) (*node.Conversation, error)
	// stream opens the stream, or gives the one that is open.
	stream func() (*stream.Carrier, error)
}

// moved reports whether a peer does not hold the shard that this node has asked for, as far as a
// denial tells.
func (s *side) moved(err error) bool {
	return errors.Is(err, ErrDenied) && !s.incoming && !s.ask.Control && s.shard.ns.core.Rule() != nil
}

// set is the id of what is synced; zero: the list of members.
func (s *side) set() (id dbadapter.NamespaceID) {
	if !s.ask.Control {
		id = s.shard.set.Keys.ID
	}
	return id
}

// converse runs one side of a sync, and accounts for it.
func (ns *Namespace) converse(ctx context.Context, s side) (report reconcile.Report, err error) {
	n := ns.node
	watch := n.metrics.Stopwatch(n.log.With(logNamespace(ns), logPeer(s.remote)))
	n.running.Add(1)
	finish := func(r reconcile.Report) reconcile.Report {
		r.Namespace, r.Peer = ns.Name(), s.remote.String()
		r.DurationMS, r.StepsMS = watch.Read()
		return r
	}
	defer func() {
		watch.Stop()
		report = finish(report)
		n.ended(status.Sync{Time: n.now().UTC(), Incoming: s.incoming, DryRun: s.ask.DryRun, Report: report}, &s, err)
		n.running.Add(-1)
	}()

	watch.Enter(reconcile.StepSketch)
	c, err := s.begin(watch.Enter)
	if err != nil {
		return report, err
	}
	talk, err := s.stream()
	if err == nil {
		err = talk.Run(ctx, c.Session, func(r reconcile.Report) {
			if s.progress != nil {
				s.progress(finish(r))
			}
		})
	}
	report, err = c.End(err)
	if s.ask.Control && report.Applied > 0 {
		ns.moveSoon()
	}
	if err == nil && s.ask.Moves() && report.Split == nil {
		ns.synced.Store(s.remote, n.now())
		if len(s.ask.Prefix) == 0 && report.Verified {
			s.shard.proved(s.remote, report.Differences())
		}
	}
	return report, err
}

// syncAll syncs several shards that the peer is to hold, too, one after the other. Where the
// two share none, it syncs the list of members, which proves nothing about records. The
// report is the sum of those that the peer holds. It is verified if the peer holds all of
// them, each was verified, and this node has taken all that it is to hold with the peer.
func (ns *Namespace) syncAll(ctx context.Context, id ID, o SyncOptions, all []*shard) (reconcile.Report, error) {
	if len(all) == 0 {
		return ns.syncMembers(ctx, id, o)
	}
	ctx, cancel := bind(ctx, ns.ctx)
	defer cancel()
	sum, synced, denied, failed := syncing.All(ctx, all, o.Progress, func(sh *shard, progress func(reconcile.Report)) (reconcile.Report, error) {
		o.Progress = progress
		return sh.sync(ctx, id, o)
	})
	if synced == 0 { // the list of members tells which of the two it is
		o.Progress = nil
		var err error
		if sum, err = ns.sync(ctx, nil, id, o); err != nil && !errors.Is(err, ErrRejected) && !errors.Is(err, ErrNotVerified) {
			return reconcile.Report{Namespace: ns.Name(), Peer: id.String()}, err
		}
		sum.MembersOnly = true
	}
	lacking := ns.lacking(id)
	if denied > 0 || lacking {
		sum.Verified = false
		verb, kind := "sync", ErrNotVerified
		if o.DryRun {
			verb, kind = "diff", ErrBusy // what was not compared is not told to be the same
		}
		if failed == nil {
			what := "that node does not hold yet, or holds no more, a shard which its hosts are to hold"
			if lacking {
				what = "this node does not hold yet a shard which it is to hold, and which that node holds or is to hold"
			}
			failed = fmt.Errorf("%s %s with %s: %w: %s; try again in a while", verb, ns.Name(), id, kind, what)
		}
	}
	return sum, failed
}

// lacking reports whether a shard that a peer holds, or is to hold, is one that this node is to
// hold and has not taken yet. Nothing of such a shard was compared.
func (ns *Namespace) lacking(id ID) bool {
	take, _ := ns.core.Moves()
	return slices.ContainsFunc(take, func(number placement.Shard) bool { return slices.Contains(ns.core.Holders(number), node.ID(id)) })
}

// syncMembers syncs the list of members with a peer that holds none of this node's shards.
func (ns *Namespace) syncMembers(ctx context.Context, id ID, o SyncOptions) (reconcile.Report, error) {
	if o.DryRun {
		report := reconcile.Report{Namespace: ns.Name(), Peer: id.String()}
		err := ns.core.MayCall(node.ID(id))
		if err == nil {
			err = fmt.Errorf("%w: that node holds no shard that this one holds, so that there is nothing to compare; syncd ns layout %s shows the hosts", ErrInvalid, ns.Name())
		}
		return report, fmt.Errorf("diff %s with %s: %w", ns.Name(), id, err)
	}
	report, err := ns.sync(ctx, nil, id, o)
	report.MembersOnly, report.Verified = true, false // of the members' list, and not of records
	return report, err
}
