package testnet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/changes"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
	"github.com/syncd-io/syncd/testnet/internal/check"
	"github.com/syncd-io/syncd/testnet/internal/model"
	"github.com/syncd-io/syncd/testnet/internal/plan"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// Run runs a scenario, or a plan drawn from the seed. An error means that the
// configuration was invalid, or that the context ended the run; the result has the
// violations of the nodes.
func Run(ctx context.Context, c Config) (Result, error) {
	p, err := c.plan()
	if err != nil {
		return Result{}, fmt.Errorf("testnet: %w", err)
	}
	res, err := run(ctx, &p)
	if c.Scenario == "" && err == nil { // a drawn plan may damage data without an expectation
		p.Expect.Corrupt = res.flipped()
		res.Unmet = p.Expect.Unmet(res.outcome)
	}
	return res, err
}

// run runs a plan that has no random lines.
func run(ctx context.Context, p *plan.Plan) (Result, error) {
	begun := time.Now()
	r := newRunner(ctx, p)
	defer r.cluster.Close()
	err := r.live()
	res := &r.result
	res.VirtualMS, res.Watched = r.world.Now().Milliseconds(), r.cluster.Watched
	res.Events, res.Frames = r.world.Steps(), r.net.Frames()
	hash := r.world.Trace.Hash()
	res.TraceHash = &hash
	res.WallMS = float64(time.Since(begun).Microseconds()) / 1000
	if err != nil {
		return *res, fmt.Errorf("testnet: run %s, seed %d: %w", p.Name, p.Seed, err)
	}
	return *res, nil
}

// maxSteps ends a run that goes on without end: a run of a soak has some
// thousand events.
const maxSteps = 50_000_000

// runner is one run.
type runner struct {
	ctx      context.Context
	plan     *plan.Plan
	world    *sim.World
	net      *sim.Net
	cluster  *model.Cluster
	history  *check.History
	panicked bool // the state of the nodes is then undefined
	again    bool // all are equal: syncs must move nothing
	rooms    int  // how often room was made under full indices
	crowded  bool // all are equal but for what finds an index full
	fills    map[int]int
	replaced map[int]bool  // nodes that were restored from a copy
	healed   time.Duration // since when nothing is wrong any more
	// restamped is the latest clock that a restamp has brought back.
	restamped dbadapter.Timestamp
	terms     time.Duration // when the last role ends that was given for a time
	own       []Violation   // beside the checker's
	waits     []*waitAfter
	gets      []*gotten // reads of which the scenario says what they should come to
	// In a namespace of shards: by which layout nodes go; which versions of keys they have read or written last, and written.
	left         map[int]bool // nodes that were removed, or lapsed, at some time
	layouts      map[int][32]byte
	known, wrote map[nodeKey]dbadapter.Version
	result       Result
}

func newRunner(ctx context.Context, p *plan.Plan) *runner {
	r := &runner{ctx: ctx, plan: p, world: sim.New(p.Seed), fills: map[int]int{}, replaced: map[int]bool{}, layouts: map[int][32]byte{}, left: map[int]bool{}, known: map[nodeKey]dbadapter.Version{}, wrote: map[nodeKey]dbadapter.Version{}, history: check.New()}
	r.net = sim.NewNet(r.world, sim.Behaviour(p.Net))
	r.cluster = model.New(r.world, r.net, model.Config{Nodes: p.Nodes, Skew: p.Skew, Signed: p.Signed, Every: p.Every, Indices: r.indices(), Ground: p.Ground, Checksums: p.Checksums, Bulk: r.bulk(), Push: p.Push, Rule: p.Rule(), LogKeeps: p.Log, Watch: r, History: r.history, Logs: r.watches()})
	if r.cut() {
		r.history.Sharded(r.cluster.Home, r.latestClock)
		if p.Writer {
			r.history.ByWriter()
		}
	}
	r.result = Result{
		Nodes: p.Nodes, Seed: p.Seed, Scenario: p.Name, Tier: "A", SettledMS: -1, plan: p,
		Violations: []Violation{}, Refused: map[string]int{},
		outcome: plan.Outcome{Refused: map[plan.Refusal]int{}},
	}
	return r
}

// bulk lets small sets go in parts in every third run. Then the parts of a sync and the
// turns of peers are on their way when faults come.
func (r *runner) bulk() syncing.Bulk {
	if r.world.Draw(sim.ForIndices, 1, 0, 0)%3 != 0 {
		return syncing.Bulk{}
	}
	return syncing.Bulk{PartsFrom: 24, PartSize: 10, Turn: 16}
}

// indices lets keys share indices in every fourth run: about ten keys an index,
// fewer than a sync accepts. By placement writer each write of a large value has a key of its own: there are too many.
func (r *runner) indices() uint64 {
	if r.plan.Indices > 0 {
		return uint64(r.plan.Indices)
	}
	if r.plan.Writer || r.world.Draw(sim.ForIndices, 0, 0, 0)%4 != 0 {
		return 0
	}
	keys := map[string]bool{}
	for i := range r.plan.Events {
		e := &r.plan.Events[i]
		if e.Verb.Writes() {
			for k := range max(1, int(e.Amount)) {
				keys[e.KeyAt(k)] = true
			}
		}
	}
	return uint64(max(2, len(keys)/10))
}

// live is the run from its first event to its verdict. A panic of the code under
// test is a violation.
func (r *runner) live() (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.panicked = true
			r.violate(rulePanic, -1, "%v, at %s", p, blame(debug.Stack()))
			r.judge()
		}
	}()
	for _, n := range r.cluster.Nodes() {
		if err := n.Start(); err != nil {
			return err
		}
	}
	r.history.Founded(0)
	if !r.plan.Alone {
		for i := 1; i < r.plan.Nodes; i++ {
			r.history.Granting(0, i, node.RoleWrite.String())
		}
	}
	if err := r.cluster.Found(!r.plan.Alone); err != nil {
		return err
	}
	for i := range r.plan.Events {
		e := &r.plan.Events[i]
		r.world.At(e.At, func() { r.do(e) })
	}
	last := r.lastEvent()
	pace := max(last/100, 50*time.Millisecond)
	for at := pace; r.world.Now() < last; at += pace {
		if err := r.run(min(at, last)); err != nil {
			return err
		}
		r.sample()
	}
	if err := r.settle(); err != nil {
		return err
	}
	r.judge()
	return nil
}

func (r *runner) lastEvent() time.Duration {
	if n := len(r.plan.Events); n > 0 {
		return r.plan.Events[n-1].At
	}
	return 0
}

var errEndless = errors.New("the run does not end")

// run lets virtual time pass.
func (r *runner) run(until time.Duration) error {
	for r.ctx.Err() == nil && r.world.Step(until) {
		if r.world.Steps() > maxSteps {
			return errEndless
		}
	}
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	r.world.Run(until)
	return nil
}

// sample notes the number of different sets.
func (r *runner) sample() {
	sets := map[dbadapter.Digest]bool{}
	p := Point{VirtualMS: r.world.Now().Milliseconds()}
	for i, n := range r.cluster.Nodes() {
		if n.Up() {
			r.history.Floored(i, n.Floor())
			digest, records := n.State()
			p.Up++
			p.Records = max(p.Records, records)
			sets[digest] = true
		}
	}
	p.Sets = len(sets)
	r.result.Series = append(r.result.Series, p)
}

func (r *runner) violate(rule check.Rule, node int, format string, args ...any) {
	r.own = append(r.own, Violation{Rule: rule, Node: node, Text: fmt.Sprintf(format, args...)})
}

// blame is the place of a panic: the first line of the stack below it that is
// the project's.
func blame(stack []byte) string {
	lines := strings.Split(string(stack), "\n")
	thrown := false
	for i := 0; i+1 < len(lines); i++ {
		thrown = thrown || strings.HasPrefix(lines[i], "panic(")
		if thrown && strings.Contains(lines[i], "syncd-io/syncd/") {
			return strings.TrimSpace(lines[i])
		}
	}
	return "an unknown place"
}

// Observed implements model.Watcher.
func (r *runner) Observed(node int, record *dbadapter.Record) {
	r.goesBy(node)
	r.history.Observe(node, record)
}

// Refused counts a refusal.
func (r *runner) Refused(_ int, err error) {
	for _, c := range []struct {
		err error
		why plan.Refusal
	}{
		{reconcile.ErrRemoved, plan.RefusedRemoved},
		{reconcile.ErrDenied, plan.RefusedDenied},
		{sim.ErrFull, plan.RefusedFull},
		{hlc.ErrOutOfBounds, plan.RefusedFuture},
		{dbadapter.ErrLimit, plan.RefusedLimit},
		{reconcile.ErrVersion, plan.RefusedVersion},
		{reconcile.ErrNotVerified, plan.RefusedUnproved},
		{reconcile.ErrProtocol, plan.RefusedProtocol},
		{model.ErrTimeout, plan.RefusedTimeout},
		{changes.ErrCursorExpired, plan.RefusedExpired},
	} {
		if errors.Is(err, c.err) {
			r.result.outcome.Refused[c.why]++
			r.result.Refused[string(c.why)]++
			return
		}
	}
}

// Ended judges a session.
func (r *runner) Ended(e *model.Ended) {
	if e.Initiator {
		r.result.Sessions++
	}
	if r.cut() {
		r.goes()
	}
	if e.Report.Split != nil {
		return // it moved nothing, and its parts follow
	}
	if e.Ask.Span != (wire.Span{}) {
		r.result.Parts++
	}
	if e.Initiator && e.Report.Repair.Needed() {
		r.result.Repairs++
	}
	if e.Report.Verified && whole(e) && !e.Alone && !r.cut() {
		for _, held := range e.Before { // what the peer held, too: it may have come back from there
			r.history.Proved(e.Node, held)
		}
	}
	e.Before, e.After = r.within(e.Before, e), r.within(e.After, e)
	switch {
	case e.Replayed:
		return // no node that could be in sync was up
	case e.Mixed, e.Report.Verified && e.Alone:
		r.violate(ruleVersion, e.Node, "a session with node %d, which spoke another version or took no part, came to %v, verified %t", e.Peer, e.Err, e.Report.Verified)
	case r.unsound(e) != "":
		r.violate(ruleSound, e.Node, "a session with node %d %s: %v", e.Peer, r.unsound(e), e.Err)
	case e.Restamped:
		return // versions were lowered under it; what nodes hold in the end is judged
	case e.Alone && !r.again && !r.crowded, begunAgain(e.Err):
		return // it moved nothing, or is begun again
	case e.Alone && errors.Is(e.Err, reconcile.ErrDenied) && !slices.Contains(r.cluster.Node(e.Peer).Shards(), e.Shard):
		return // the peer has left the shard since this was first tried
	case !r.cut() && !r.again && !r.crowded && e.Report.Method == wire.MethodSame && e.Report.Verified && e.Report.Applied == 0 && alike(e.Before):
		return // most are, and to judge them as the others are takes long
	}
	e.Again, e.Full, e.Unproved, e.Whole = r.again, r.crowded, unproved(e.Err), whole(e)
	e.Collisions = r.collisions(e.Before, e.Report.Repair.Collisions)
	r.history.Synced(&e.Sync)
}

// begunAgain reports whether a session that ended so is followed by another, of its
// node's own accord.
func begunAgain(err error) bool {
	return errors.Is(err, reconcile.ErrBusy) || errors.Is(err, reconcile.ErrListsDiffer)
}

// leftMeanwhile reports whether the shard that a session was about left one of its nodes meanwhile: nothing
// else closes a store while its process runs.
func (r *runner) leftMeanwhile(e *model.Ended) bool {
	return errors.Is(e.Err, dbadapter.ErrClosed) || r.cut() && errors.Is(e.Err, reconcile.ErrPeer) && !slices.Contains(r.cluster.Node(e.Peer).Shards(), e.Shard)
}

// unproved reports whether a session ended so because what was said in it cannot be.
func unproved(err error) bool {
	return errors.Is(err, reconcile.ErrNotVerified) || errors.Is(err, reconcile.ErrProtocol)
}

// unsound describes a fault that no session of two honest nodes has; empty if
// this one has no such fault.
func (r *runner) unsound(e *model.Ended) string {
	hurt := e.Struck || e.Stray || e.Wrong[0].Any() || e.Wrong[1].Any()
	switch {
	case hurt && unproved(e.Err):
		return "" // the rule healed judges it
	case unproved(e.Err):
		return "broke the protocol or its own proof"
	case e.Err != nil && !begunAgain(e.Err) && !r.leftMeanwhile(e) && !e.Alone && r.healed > 0 && e.Begun > r.healed:
		return "failed, though nothing was wrong any more"
	case !hurt && e.Report.Method == wire.MethodAll && e.Ask.Span == (wire.Span{}) && e.Ask.Method != wire.MethodAll && len(e.Before[0]) > 0 && len(e.Before[1]) > 0:
		return "did not find the differences by cells"
	}
	return ""
}

// within are the records of both sides that a sync compared.
func (r *runner) within(dumps [2][]dbadapter.Record, e *model.Ended) (in [2][]dbadapter.Record) {
	a := &e.Ask
	if len(a.Prefix) == 0 && a.Span == (wire.Span{}) {
		return dumps
	}
	for side, dump := range dumps {
		if dump == nil {
			continue // nothing is known of it
		}
		in[side] = []dbadapter.Record{}
		for _, record := range dump {
			if bytes.HasPrefix(record.Key, a.Prefix) && a.Span.Holds(r.cluster.IndexIn(e.Shard, record.Key)) {
				in[side] = append(in[side], record)
			}
		}
	}
	return in
}

// alike reports whether both sides held the same, to the byte.
func alike(dumps [2][]dbadapter.Record) bool {
	return slices.EqualFunc(dumps[0], dumps[1], func(a, b dbadapter.Record) bool {
		return a.Version == b.Version && a.Deleted == b.Deleted && bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) &&
			a.Expires == b.Expires && slices.Equal(a.Replaces, b.Replaces)
	})
}
