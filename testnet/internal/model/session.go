package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
	"github.com/syncd-io/syncd/testnet/internal/check"
)

// Errors that a session can end with, besides those of package reconcile.
var (
	// ErrTimeout: a frame did not come in time.
	ErrTimeout = errors.New("the peer was silent for too long")
	// ErrUnreachable: the stream broke.
	ErrUnreachable = reconcile.ErrUnreachable
)

// Ended is a session that is over, as one side saw it. Of the Sync the fields are filled in
// that a session can tell.
type Ended struct {
	check.Sync
	Initiator bool
	Ask       syncing.Ask
	Err       error
	// Alone says that the other side never took a snapshot, because it refused
	// or was not reached.
	Alone bool
	// Mixed says that the two spoke different versions of the protocol.
	Mixed bool
	// Restamped says that one of the two restamped records meanwhile, or set some
	// aside.
	Restamped bool
	// Replayed says that the frames of the initiator were a replay.
	Replayed bool
}

// meeting is both sides of a session, for the checker; a side itself sees only
// its peer's frames.
type meeting struct {
	sides    [2]*session // initiator and responder
	replayed bool
	stray    *stray // what the initiator's cells hold beside its own, or nil
}

// tape is what an initiator has sent.
type tape struct{ frames [][]byte }

// session is one side of a sync: a conversation, and its frames on a stream.
type session struct {
	*node.Conversation
	begun   time.Duration
	process *process
	shard   *shard // whose records it is about; one without any, if it is about the list of members alone
	meeting *meeting
	side    int // 0: initiator
	remote  int
	old     bool // as its node
	conn    *conn
	tape    *tape  // of an initiator
	done    func() // gives back the place
	over    bool

	ask     syncing.Ask
	listed  []reconcile.KeyDifference
	before  []dbadapter.Record
	at      int // shard.applied when the snapshot was taken
	stamped int // shard.restamps then
	applied int // records, by this session
	wrong   check.Wrong
	sums    []Deviation // of wrong
	strikes int         // of the node, when the snapshot was taken
	// after: a session was under way then that had taken its snapshot before a strike. It
	// may repair what is not wrong any more.
	after bool
}

// begin makes a session of the process; open begins its conversation.
func (p *process) begin(sh *shard, remote, side int, m *meeting, a syncing.Ask, open func(x *session) (*node.Conversation, error)) (_ *session, err error) {
	p.flush() // what has a version by now is in the snapshot; package peer needs the lock of commits for that
	x := &session{begun: p.node.world.Now(), process: p, shard: sh, meeting: m, side: side, remote: remote, old: p.node.old, at: sh.applied, stamped: sh.restamps, ask: a, before: sh.records()}
	if x.Conversation, err = open(x); err != nil {
		return nil, err
	}
	x.wrong, x.sums = p.wrong()
	x.strikes = p.node.strikes
	x.after = slices.ContainsFunc(p.sessions, (*session).struck)
	m.sides[side] = x
	p.sessions = append(p.sessions, x)
	p.node.cluster.open++
	return x, nil
}

func (x *session) enter(s reconcile.Step) {
	if !x.over {
		x.process.node.enter(s)
	}
}

// converse holds a conversation with another node.
func (p *process) converse(ctx context.Context, sh *shard, remote int, a syncing.Ask) (reconcile.Report, error) {
	n := p.node
	there := n.cluster.nodes[remote]
	m := &meeting{}
	of := sh.part()
	x, err := p.begin(sh, remote, 0, m, a, func(x *session) (*node.Conversation, error) {
		a := a
		if a.Keys != nil {
			a.Keys = &syncing.KeyList{Each: func(d reconcile.KeyDifference, _ func() error) error {
				x.listed = append(x.listed, d)
				return nil
			}}
		}
		return of.Initiate(context.Background(), there.id, a, x.enter)
	})
	if err != nil {
		return reconcile.Report{}, err
	}
	x.tape = &tape{}
	if n.stray[remote] && a.Moves() {
		delete(n.stray, remote)
		m.stray = n.drawStray(n.starts, uint64(remote))
	} else if n.short[remote] && a.Moves() && len(a.Prefix) == 0 && a.Span == (wire.Span{}) {
		m.stray = p.shortStray(there, n.starts)
		n.short[remote] = m.stray == nil
	}
	n.cluster.last[[2]int{n.number, remote}] = x.tape
	x.done = of.Call(there.id, a)
	c := p.dial(there, m.serve)
	report, err := x.run(ctx, c)
	c.end() // a process that dies before leaves that to its machine
	return report, err
}

// run runs the session to its end. ErrDown: the process has ended.
func (x *session) run(ctx context.Context, c *conn) (reconcile.Report, error) {
	x.conn = c
	for {
		took := x.shard.took()
		e := x.Session.Next()
		x.applied += x.shard.took() - took
		switch e.Want {
		case reconcile.WantSend:
			x.send(&e)
		case reconcile.WantReceive:
			var m wire.Message
			var size int
			frame, err := c.receive(ctx, idleTimeout)
			if errors.Is(err, ErrDown) {
				return reconcile.Report{}, err
			}
			if err == nil {
				m, size, err = read[wire.Message](frame)
			}
			if err != nil {
				x.Session.Fail(err)
			} else {
				x.Session.Deliver(m, size)
			}
		case reconcile.WantNothing:
			return x.end()
		}
	}
}

func (x *session) send(e *reconcile.Event) {
	n := x.process.node
	frame := slices.Clone(e.Frame)
	if _, ok := e.Message.(*wire.Hello); ok && n.old {
		frame[versionAt(frame)] = oldVersion
	}
	if n.liar {
		frame = boasting(e.Message, frame)
	}
	if x.side == 0 && x.meeting.stray != nil {
		frame = x.meeting.stray.into(e.Message, frame)
	}
	if x.tape != nil {
		x.tape.frames = append(x.tape.frames, frame)
	}
	x.conn.stream.Send(frame)
}

// end reports a session that is over to the watcher.
func (x *session) end() (reconcile.Report, error) {
	failed := x.Session.Err()
	x.conn.stream.Close()
	x.process.flush() // a sweep that follows from it waits for what is being committed
	report, err := x.leave(failed)
	n := x.process.node
	n.world.Note("ended", n.number, x.remote, fmt.Appendf(nil, "%v %s %d %d %t %d", err, report.Method, report.Applied, report.Sent, report.Verified, report.Cells))
	if err != nil {
		n.cluster.Watch.Refused(n.number, err)
	}
	x.process.audit()
	x.process.hears()
	if x.ask.Control && report.Applied > 0 {
		x.process.moveSoon()
	}
	if !x.ask.Control { // the checker knows the data
		n.cluster.Watch.Ended(x.judged(report, err))
	}
	return report, err
}

// struck reports whether the node's state was damaged after the session's snapshot, or is
// about to be repaired by one of which that is so.
func (x *session) struck() bool { return x.after || x.strikes != x.process.node.strikes }

// judged is the session as the checker reads it.
func (x *session) judged(report reconcile.Report, err error) *Ended {
	n := x.process.node
	e := &Ended{
		Sync: check.Sync{
			Node: n.number, Peer: x.remote, Report: report, Listed: x.listed, Took: x.applied, Counted: true, Failed: err != nil,
			Gets: x.ask.Direction != wire.Push, Gives: x.ask.Direction != wire.Pull, DryRun: x.ask.DryRun, At: n.world.Now(),
			Quiet: x.shard.applied == x.at+x.applied, Damaged: n.struck, Struck: x.struck(), Stray: x.meeting.stray != nil,
			Compared: report.Method == wire.MethodSketch && len(x.ask.Prefix) == 0 && x.ask.Span == (wire.Span{}),
		},
		Initiator: x.side == 0, Ask: x.ask, Err: err, Alone: true, Replayed: x.meeting.replayed, Restamped: x.shard.restamps != x.stamped,
	}
	if e.Lists = e.Initiator && x.ask.Keys != nil; !e.Initiator {
		e.Gets, e.Gives = e.Gives, e.Gets
	}
	if x.shard.set != nil {
		e.Shard = int(x.shard.set.Shard())
	}
	e.Before[0], e.After[0] = x.before, x.shard.records()
	e.Wrong[0] = x.wrong
	e.Still, _ = x.process.wrong()
	if initiator := x.meeting.sides[0]; initiator != nil {
		e.Begun = initiator.begun
	}
	if y := x.meeting.sides[1-x.side]; y != nil {
		e.Restamped = e.Restamped || y.shard.restamps != y.stamped
		e.Alone, e.Mixed, e.Before[1] = false, x.old != y.old, y.before
		e.Alike = Common(x.sums, y.sums)
		e.Wrong[1], e.Struck = y.wrong, e.Struck || y.struck()
		if y.process.node.process == y.process && slices.Contains(y.process.shards, y.shard) { // it has not left the shard
			e.After[1] = y.shard.records()
		}
		e.Quiet = e.Quiet && y.shard.applied == y.at+y.applied
	}
	return e
}

// leave releases what the session held.
func (x *session) leave(failed error) (reconcile.Report, error) {
	p := x.process
	x.over = true
	p.sessions = slices.DeleteFunc(p.sessions, func(y *session) bool { return y == x })
	if x.done != nil {
		x.done()
	}
	p.node.cluster.open--
	return x.End(failed)
}
