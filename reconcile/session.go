package reconcile

import (
	"iter"

	"github.com/syncd-io/syncd/reconcile/wire"
)

// Event is what a session wants next.
type Event struct {
	Want Want
	// Message is to be sent, for WantSend, and Frame is its encoding. Their
	// memory is the session's again with the next call of Next.
	Message wire.Message
	Frame   []byte
	// Flush asks for the frame to leave at once, with all frames before it. The session
	// goes on computing and will not wait for an answer soon.
	Flush bool
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

// Session is one side of one sync, without socket, clock or goroutine: it says what it
// wants, and is told what has arrived. Inside, a side is written as the straight line
// of its steps, and that line runs as a coroutine. So a caller on one goroutine, or a
// simulator with a thousand sessions, can carry any number of them.
//
// A session must be run until WantNothing, or closed. It may be used from one
// goroutine at a time.
type Session struct {
	link   *link
	next   func() (Event, bool)
	stop   func()
	inbox  wire.Message
	size   int
	failed error
	report Report
	err    error
	over   bool
	// running says that the line runs now, on the caller's behalf.
	running bool
}

// start makes a session of a straight line.
func start(o Options, line func(*link) error) *Session {
	s := &Session{}
	s.next, s.stop = iter.Pull(func(yield func(Event) bool) {
		s.link = newLink(s, o, yield)
		defer s.link.release()
		s.err = s.link.close(line(s.link))
	})
	return s
}

// Next returns what the session wants now.
func (s *Session) Next() Event {
	if !s.over {
		s.running = true
		e, ok := s.next()
		s.running = false
		if ok {
			return e
		}
		s.over = true
	}
	return Event{Want: WantNothing}
}

// Deliver hands over the message that the session waits for, and the length of its
// frame. Its memory is the session's from then on.
func (s *Session) Deliver(m wire.Message, size int) { s.inbox, s.size = m, size }

// Fail tells the session that no message will come, and why. A malformed frame
// (wire.ErrFrame) is answered with a refusal; after any other failure nothing
// is sent.
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

// Report is what the session has done so far; it is meaningful after an error as well.
func (s *Session) Report() Report { return s.report }
