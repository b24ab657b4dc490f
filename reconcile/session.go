package reconcile

import (
	"errors"
	"iter"

	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Event is what a session wants next.
type Event struct {
	Want Want
	// Message is to be sent, for WantSend, and Frame is its encoding. Their
	// memory is the session's again with the next call of Next.
	Message wire.Message
	Frame   []byte
}

// Want says what to do for a session.
type Want byte

// What a session can want.
const (
	// WantSend: send Event.Frame, then call Next.
	WantSend Want = iota + 1
	// WantReceive: hand over the next message with Deliver, or a failure with
	// Fail, then call Next.
	WantReceive
	// WantNothing: the session is over; see Err and Report.
	WantNothing
)

// Session is one side of one sync, without socket, clock or goroutine: it
// says what it wants, and is told what came. Inside, a side is written as the
// straight line of its steps; the line runs as a coroutine, so that a caller
// on one goroutine, or a simulator with a thousand sessions, can carry any
// number of them.
//
// A session must be run until WantNothing, or closed. It may be used from one
// goroutine at a time.
type Session struct {
	next   func() (Event, bool)
	stop   func()
	inbox  wire.Message
	size   int
	failed error
	report Report
	err    error
	over   bool
}

// start makes a session of a straight line.
func start(line func(*link) error) *Session {
	s := &Session{}
	s.next, s.stop = iter.Pull(func(yield func(Event) bool) {
		l := &link{session: s, yield: yield, report: &s.report}
		s.err = l.close(line(l))
	})
	return s
}

// Next returns what the session wants now.
func (s *Session) Next() Event {
	if !s.over {
		if e, ok := s.next(); ok {
			return e
		}
		s.over = true
	}
	return Event{Want: WantNothing}
}

// Deliver hands over the message that the session waits for, and the length of
// the frame it came in. Its memory is the session's from then on.
func (s *Session) Deliver(m wire.Message, size int) { s.inbox, s.size = m, size }

// Fail tells the session that no message will come, and why.
func (s *Session) Fail(err error) { s.failed = err }

// Close abandons the session. Idempotent.
func (s *Session) Close() {
	s.stop()
	if !s.over && s.err == nil {
		s.err = ErrClosed
	}
	s.over = true
}

// Err is why the session ended; nil if it did its work or is not over yet.
func (s *Session) Err() error { return s.err }

// Report is what the session has done so far; it is meaningful beside an
// error as well.
func (s *Session) Report() Report { return s.report }

// link is a session as seen from inside its straight line.
type link struct {
	session *Session
	yield   func(Event) bool
	report  *Report
	frame   []byte
	gone    bool // the caller has closed the session
	deaf    bool // no further message will come
}

// send hands out a message.
func (l *link) send(m wire.Message) error {
	if l.gone {
		return ErrClosed
	}
	l.frame = wire.Append(l.frame[:0], m)
	l.report.WireBytesSent += int64(len(l.frame))
	l.count(m, len(l.frame))
	if !l.yield(Event{Want: WantSend, Message: m, Frame: l.frame}) {
		l.gone = true
		return ErrClosed
	}
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
	}
}

// receive waits for a message. A refusal comes back as the error it stands
// for.
func (l *link) receive() (wire.Message, error) {
	if l.gone || !l.yield(Event{Want: WantReceive}) {
		l.gone = true
		return nil, ErrClosed
	}
	s := l.session
	m := s.inbox
	s.inbox = nil
	if s.failed != nil {
		l.deaf = true
		return nil, s.failed
	}
	if m == nil {
		return nil, errors.New("reconcile: Next was called before Deliver or Fail")
	}
	l.report.WireBytesReceived += int64(s.size)
	l.count(m, s.size)
	if r, ok := m.(*wire.Refuse); ok {
		l.deaf = true
		return nil, refused(r)
	}
	return m, nil
}

// close tells the other side why the line broke, where that makes sense.
func (l *link) close(err error) error {
	if err != nil && !l.gone && !l.deaf {
		_ = l.send(refusal(err)) // the line is lost either way
	}
	return err
}
