package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// noStep is where a session is before its first step.
const noStep Step = -1

// link is a session as its straight line sees it: messages go out and come in,
// steps begin, memory is reserved.
type link struct {
	session *Session
	opts    *Options
	yield   func(Event) bool
	report  *Report
	frame   []byte
	step    Step
	depth   int  // of steps inside one another
	gone    bool // the caller has closed the session
	deaf    bool // the peer would not read a refusal

	turn     time.Duration // when the last message came or went, but for Working
	waited   time.Duration // for the peer, since this side last made headway
	records  int           // moved since then
	bytes    int64         // of them
	spoke    time.Duration // when this side sent the last one of any kind
	gaveWay  time.Duration // when others were let run
	reserved int64         // bytes taken from the budget

	// settle waits for the commits that run aside; nil before the first one.
	settle func() error
}

func newLink(s *Session, o Options, yield func(Event) bool) *link {
	l := &link{session: s, opts: &o, yield: yield, report: &s.report, step: noStep}
	l.turn = l.elapsed()
	l.spoke = l.turn
	return l
}

// send hands out a message.
func (l *link) send(m wire.Message) error { return l.sendNow(m, false) }

// sendNow hands out a message; with flush it leaves at once.
func (l *link) sendNow(m wire.Message, flush bool) error {
	err := l.emit(m, flush)
	l.turn = l.elapsed()
	l.spoke = l.turn
	return err
}

func (l *link) emit(m wire.Message, flush bool) error {
	if l.gone {
		return ErrClosed
	}
	l.frame = wire.Append(l.frame[:0], m)
	l.report.WireBytesSent += int64(len(l.frame)) // or some of them, where the write fails
	if !l.yield(Event{Want: WantSend, Message: m, Frame: l.frame, Flush: flush}) {
		l.gone = true
		return ErrClosed
	}
	l.count(m, len(l.frame))
	return nil
}

// count books a frame under what it carries.
func (l *link) count(m wire.Message, size int) {
	r := l.report
	switch m := m.(type) {
	case *wire.Hello:
		r.Cells += len(m.Cells)
		r.SketchBytes += int64(len(m.Cells)*rateless.CellSize + len(m.Estimator))
	case *wire.More:
		r.SketchBytes += int64(size)
	case *wire.Cells:
		r.Cells += len(m.Cells)
		r.SketchBytes += int64(size)
	case *wire.Records:
		r.RecordBytes += int64(size)
	case *wire.Working:
		r.Working++
	}
}

// receive waits for a message other than Working. A refusal comes back as the
// error it stands for.
func (l *link) receive() (wire.Message, error) {
	for {
		began := l.elapsed()
		m, err := l.read()
		if err == nil {
			err = l.wait(l.elapsed() - began)
		}
		if err != nil {
			return nil, err
		}
		if _, ok := m.(*wire.Working); !ok {
			l.turn = l.elapsed()
			return m, nil
		}
	}
}

// due waits for the one kind of message that may come now.
func due[M wire.Message](l *link) (M, error) {
	var none M
	m, err := l.receive()
	if err != nil {
		return none, err
	}
	if due, ok := m.(M); ok {
		return due, nil
	}
	return none, unexpected(m)
}

func (l *link) read() (wire.Message, error) {
	if l.gone || !l.yield(Event{Want: WantReceive}) {
		l.gone = true
		return nil, ErrClosed
	}
	s := l.session
	m := s.inbox
	s.inbox = nil
	if err := s.failed; err != nil {
		if errors.Is(err, wire.ErrFrame) {
			if !errors.Is(err, ErrProtocol) {
				err = fmt.Errorf("%w: %w", ErrProtocol, err)
			}
			return nil, err
		}
		l.deaf = true
		return nil, err
	}
	if m == nil {
		return nil, errors.New("reconcile: Next was called before Deliver or Fail")
	}
	l.report.WireBytesReceived += int64(s.size)
	l.count(m, s.size)
	if r, ok := m.(*wire.Refuse); ok {
		l.deaf = true
		return nil, Refused(r)
	}
	return m, nil
}

// in begins a step; the function that it returns goes back to the step around
// it, if there is one. What lies between two steps counts for the first.
func (l *link) in(s Step) (out func()) {
	around, inside := l.step, l.depth > 0
	l.depth++
	l.enter(s)
	return func() {
		if l.depth--; inside {
			l.enter(around)
		}
	}
}

func (l *link) enter(s Step) {
	if s == l.step {
		return
	}
	if l.step = s; l.opts.Enter != nil {
		l.opts.Enter(s)
	}
}

// close waits for what runs aside, whose memory and report are the session's. It tells
// the other side why the line broke, unless that side would not read it.
func (l *link) close(err error) error {
	if l.settle != nil {
		err = cmp.Or(err, l.settle())
	}
	if err != nil && !l.gone && !l.deaf {
		_ = l.send(Refusal(err)) // the line is lost either way
	}
	return err
}
