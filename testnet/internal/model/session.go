package model

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/replica"
	"github.com/syncd-io/syncd/reconcile/wire"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// Errors that a session can end with beside those of package reconcile.
var (
	// ErrTimeout: a frame did not come in time.
	ErrTimeout = errors.New("the peer was silent for too long")
	// ErrUnreachable: the stream broke.
	ErrUnreachable = errors.New("the peer cannot be reached")
)

// Ask is what an initiator wants of a sync.
type Ask struct {
	Direction wire.Direction
	Method    wire.Method
	DryRun    bool
	Prefix    []byte
}

// Ended is a session that is over, as one side saw it.
type Ended struct {
	Node, Peer int
	Initiator  bool
	Ask        Ask
	Report     reconcile.Report
	Err        error
	// Begun is when the initiator began.
	Begun time.Duration
	// Before are the records of Node and Peer when each took its snapshot;
	// nil for a side that did not come so far. After are those of now, nil
	// where the process that took part is gone.
	Before, After [2][]dbadapter.Record
	// Quiet says that nothing else wrote at either side meanwhile.
	Quiet bool
	// Took is how many records the store of Node took from the session.
	Took int
	// Alone says that the other side never took a snapshot: it refused, say,
	// or was not there.
	Alone bool
	// Mixed says that the two spoke different versions of the protocol.
	Mixed bool
	// Replayed says that there was no initiator, but old frames.
	Replayed bool
}

// meeting is what both sides of a session know of it: nothing that the real
// ones would not, but for who judges them.
type meeting struct {
	sides    [2]*session // initiator and responder
	replayed bool
}

// tape is what an initiator has sent.
type tape struct{ frames [][]byte }

// session is one side of a sync.
type session struct {
	begun   time.Duration
	process *process
	meeting *meeting
	side    int // 0: initiator
	remote  int
	old     bool // as its node
	core    *reconcile.Session
	replica reconcile.Replica
	close   func() error // the replica
	stream  *sim.Stream
	tape    *tape // of an initiator

	inbox    [][]byte
	broken   error // why no more will come
	waiting  bool
	deadline *timer
	over     bool

	ask     Ask
	before  []dbadapter.Record
	at      int // p.applied when the snapshot was taken
	applied int // records, by this session
	finish  func(error)
}

// begin makes a session of the process and opens its replica.
func (p *process) begin(remote, side int, m *meeting, a Ask) (*session, error) {
	x := &session{begun: p.node.world.Now(), process: p, meeting: m, side: side, remote: remote, old: p.node.old, at: p.applied, ask: a, before: p.records()}
	if err := x.open(); err != nil {
		return nil, err
	}
	m.sides[side] = x
	p.sessions = append(p.sessions, x)
	p.node.cluster.open++
	return x, nil
}

// open opens the set of records that the sync is about.
func (x *session) open() error {
	p, ctx := x.process, context.Background()
	if len(x.ask.Prefix) > 0 {
		r, err := replica.OpenPrefix(ctx, p.store, p.node.cluster.keys, x.ask.Prefix, nil)
		if err != nil {
			return err
		}
		x.replica, x.close = r, r.Close
		return nil
	}
	if _, err := p.live.Grow(ctx, p.store, nil); err != nil {
		return err
	}
	r, err := p.live.Snapshot(ctx, p.store, nil)
	if err != nil {
		return err
	}
	x.replica, x.close = r, r.Close
	return nil
}

// drop gives back what the session holds.
func (x *session) drop() {
	if x.core != nil {
		x.core.Close()
	}
	_ = x.close() // it was only read
	x.process.node.cluster.open--
}

func (x *session) options() reconcile.Options {
	n := x.process.node
	n.dials++
	o := reconcile.Options{
		Keys: n.cluster.keys, Self: n.name, Remote: n.cluster.nodes[x.remote].name, Admit: x.door,
		Enter: x.enter, Declined: x.process.aside(x.remote),
	}
	binary.BigEndian.PutUint64(o.Nonce[:], n.world.Draw(sim.ForNonce, uint64(n.id), n.dials, 0))
	binary.BigEndian.PutUint64(o.Nonce[8:], n.world.Draw(sim.ForNonce, uint64(n.id), n.dials, 1))
	return o
}

func (x *session) enter(s reconcile.Step) {
	if !x.over {
		x.process.node.enter(s)
	}
}

// dial begins a sync with another node.
func (p *process) dial(remote int, a Ask, finish func(error)) {
	n := p.node
	m := &meeting{}
	x, err := p.begin(remote, 0, m, a)
	if err != nil {
		finish(err)
		return
	}
	x.finish, x.tape = finish, &tape{}
	n.cluster.last[[2]int{n.id, remote}] = x.tape
	if !a.DryRun {
		p.calls[remote]++
	}
	there := n.cluster.nodes[remote]
	x.listen(n.cluster.Net.Dial(n.id, remote, func(s *sim.Stream) bool { return there.accept(s, n.id, m) }))
	o := x.options()
	o.Direction, o.Method, o.DryRun, o.Prefix = a.Direction, a.Method, a.DryRun, a.Prefix
	if len(a.Prefix) == 0 {
		o.FirstCells = p.opening(remote)
	}
	x.core = reconcile.Initiate(x.replica, o)
	x.pump()
}

func (x *session) listen(s *sim.Stream) {
	x.stream = s
	if x.side == 1 {
		return // accept has done so
	}
	p := x.process
	s.Receive = func(frame []byte) { p.now(func() { x.take(frame) }) }
	s.Broken = func(err error) { p.now(func() { x.broke(err) }) }
}

// take hands a frame to the session.
func (x *session) take(frame []byte) {
	if x.over {
		return
	}
	n := x.process.node
	n.world.Note("frame", x.remote, n.id, frame)
	x.inbox = append(x.inbox, frame)
	x.pump()
}

// broke tells the session that no more frames will come.
func (x *session) broke(err error) {
	if x.over {
		return
	}
	x.broken = fmt.Errorf("%w: %w", ErrUnreachable, err)
	x.pump()
}

// pump runs the session until it waits for what has not come.
func (x *session) pump() {
	if x.waiting && len(x.inbox) == 0 && x.broken == nil {
		return
	}
	for !x.over {
		if x.waiting {
			x.hand()
		}
		e := x.core.Next()
		switch e.Want {
		case reconcile.WantSend:
			x.send(&e)
		case reconcile.WantReceive:
			x.waiting = true
			if len(x.inbox) == 0 && x.broken == nil {
				x.deadline.stop()
				x.deadline = x.process.after(idleTimeout, func() {
					x.broken = ErrTimeout
					x.pump()
				})
				return
			}
		case reconcile.WantNothing:
			x.end()
		}
	}
}

// hand gives the session what it waits for.
func (x *session) hand() {
	x.waiting = false
	x.deadline.stop()
	if len(x.inbox) == 0 {
		x.core.Fail(x.broken)
		return
	}
	frame := x.inbox[0]
	x.inbox = x.inbox[1:]
	m, size, err := wire.Read(bytes.NewReader(frame))
	if err != nil {
		x.core.Fail(fmt.Errorf("%w: %w", reconcile.ErrProtocol, err))
		return
	}
	x.core.Deliver(m, size)
}

func (x *session) send(e *reconcile.Event) {
	n := x.process.node
	frame := slices.Clone(e.Frame)
	if _, ok := e.Message.(*wire.Hello); ok && n.old {
		frame[versionAt(frame)] = oldVersion
	}
	if x.tape != nil {
		x.tape.frames = append(x.tape.frames, frame)
	}
	x.stream.Send(frame)
}

// end accounts for a session that is over.
func (x *session) end() {
	err := x.core.Err()
	report := x.core.Report()
	x.stream.Close()
	x.leave()
	p, n := x.process, x.process.node
	n.world.Note("ended", n.id, x.remote, fmt.Appendf(nil, "%v %s %d %d %t %d", err, report.Method, report.Applied, report.Sent, report.Verified, report.Cells))
	if err != nil {
		n.cluster.Watch.Refused(n.id, err)
	} else if report.Method != wire.MethodAll && len(x.ask.Prefix) == 0 {
		p.opened(x.remote, report.Differences())
	}
	n.cluster.Watch.Ended(x.judged(report, err))
	if x.finish != nil {
		x.finish(err)
	}
}

// judged is the session for who judges it.
func (x *session) judged(report reconcile.Report, err error) *Ended {
	n := x.process.node
	e := &Ended{
		Node: n.id, Peer: x.remote, Initiator: x.side == 0, Ask: x.ask, Report: report, Err: err,
		Took: x.applied, Alone: true, Replayed: x.meeting.replayed, Quiet: x.process.applied == x.at+x.applied,
	}
	e.Before[0], e.After[0] = x.before, x.process.records()
	if initiator := x.meeting.sides[0]; initiator != nil {
		e.Begun = initiator.begun
	}
	if y := x.meeting.sides[1-x.side]; y != nil {
		e.Alone, e.Mixed, e.Before[1] = false, x.old != y.old, y.before
		if y.process.node.process == y.process {
			e.After[1] = y.process.records()
		}
		e.Quiet = e.Quiet && y.process.applied == y.at+y.applied
	}
	return e
}

// leave gives back what the session held.
func (x *session) leave() {
	p := x.process
	x.over = true
	x.deadline.stop()
	x.drop()
	p.sessions = slices.DeleteFunc(p.sessions, func(y *session) bool { return y == x })
	switch {
	case x.side == 1:
		p.incoming[x.remote]--
	case !x.ask.DryRun:
		p.calls[x.remote]--
	}
}

// abandon ends the session with its process.
func (x *session) abandon(silently bool) {
	x.over = true
	if silently && x.process.node.world.Draw(sim.ForReset, uint64(x.process.node.id), x.process.node.starts, uint64(x.remote))%2 == 0 {
		x.stream.Vanish()
	} else {
		x.stream.Reset()
	}
	x.drop()
}
