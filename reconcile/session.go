package reconcile

import (
	"fmt"
	"iter"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
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

// Options are what one session needs to know besides its replica. Randomness and time
// are handed in.
type Options struct {
	// Keys are those of the namespace.
	Keys Keys
	// Self and Remote are the names of the two sides as the channel between
	// them has authenticated them.
	Self, Remote []byte
	// Admit applies the records that arrive. A dry run never calls it.
	Admit Admission
	// Aside, if not nil, runs an admission while the session goes on. It may begin fn on
	// another goroutine. wait returns when fn has.
	// Several admissions then run at a time and end in any order. nil: the session runs each
	// itself.
	Aside func(fn func()) (wait func())
	// Nonce is 16 fresh random bytes.
	Nonce wire.Nonce
	// Prefix narrows an initiator's sync to the keys that begin with it; the
	// replica must hold just these.
	Prefix []byte
	// Span narrows an initiator's sync to a part of the ranges; the replica must hold
	// just these.
	Span wire.Span
	// Expect, if not nil, is called before many cells travel. It is told about how many
	// records come to this side at the most, as far as an estimate can tell. Its error
	// ends the session, before the cells: ErrTurn while others come first.
	Expect func(records int) error
	// Await, if not nil, is called before records come to this side, with the number of
	// those told so far. all says that no more will be told. Its error is as that of Expect.
	Await func(records int, all bool) error
	// PartsFrom is from how many differences on a sync goes in parts, at the responder;
	// 0 means the constant PartsFrom.
	PartsFrom int64
	// Direction and Method are the initiator's wishes; the zero values are
	// both ways, and the cheapest.
	Direction wire.Direction
	Method    wire.Method
	// DryRun finds the differences and moves nothing.
	DryRun bool
	// Differs, if not nil, is told each key that differs, in a dry run at the initiator, in the order of
	// the indices. It may take its time, and then calls Session.Tick. It says whether it
	// wants the next one.
	Differs func(KeyDifference) (more bool, err error)
	// ListsMayDiffer is an initiator's wish to sync although the two sides have
	// different lists of members. A responder finds it in the Hello.
	ListsMayDiffer bool
	// Greeting, if not nil, is what this side says of itself. It is called once, right
	// after the replica has been opened. Its Tau must have been read before that: a
	// version that is written between the two is in the replica or greater than Tau. A
	// dry run, and a sync of a prefix, say 0.
	Greeting func() wire.Greeting
	// Heed, if not nil, decides upon the peer's greeting, once the peer has proved that
	// it knows the secret. The responder calls it before anything is opened or
	// reserved. Its error ends the session, and the peer is told its code:
	// ErrListsDiffer, ErrTwin, ErrDenied, ErrBusy or a RemovedError.
	Heed func(theirs wire.Greeting) error
	// FirstCells is how many cells an initiator's Hello carries, from QuietCells
	// to MaxFirstCells; 0 means the constant FirstCells, and NoCells no cells.
	FirstCells int
	// Enter, if not nil, is called when a step begins, and when one goes on
	// after a step inside it.
	Enter func(Step)
	// Elapsed, if not nil, is the time since a fixed moment. Without it the
	// session never says that it is working.
	Elapsed func() time.Duration
	// GiveWay, if not nil, lets others run that wait for a processor. A session that
	// computes calls it several times a millisecond, by Elapsed.
	GiveWay func()
	// Declined, if not nil, remembers the records that this peer has declined.
	Declined *Declined
	// Budget, if not nil, lends the session's memory.
	Budget *Budget
}

// Admission checks the limits, rights, signatures and clocks of records that
// arrive; commit then commits those that pass. The verdicts are in the order of the
// records. A session calls commit once for each admission.
type Admission func(records []dbadapter.Hashed) (commit func() ([]Verdict, error))

// Verdict says what the admission made of a record.
type Verdict struct {
	// Result is Applied, Same or Dominated where the record was let in.
	Result dbadapter.Result
	// Reason, if not 0, is why it was refused.
	Reason wire.Reason
}

// Tick is called by long work that is done for the session within Next: by the
// scans of its replica. It gives the session a chance to tell its peer that it is
// working, and costs a look at the clock. After an error the work must end with
// that error. Outside Next it does nothing.
func (s *Session) Tick() error {
	if !s.running {
		return nil
	}
	return s.link.tick()
}

// elapsed is the session's clock; 0 without one.
func (l *link) elapsed() time.Duration {
	if l.opts.Elapsed == nil {
		return 0
	}
	return l.opts.Elapsed()
}

// tick gives way to others, and sends a Working message if this side has been silent
// for workingEvery. It fails once this side has computed for workingFor: the peer waits no longer.
func (l *link) tick() error {
	if l.gone {
		return ErrClosed
	}
	now := l.elapsed()
	if l.opts.GiveWay != nil && now-l.gaveWay >= giveWayEvery {
		l.gaveWay = now
		l.opts.GiveWay()
	}
	switch {
	case now-l.turn > workingFor:
		return fmt.Errorf("%w: this side has computed for %v and is not done", ErrBusy, workingFor)
	case now-l.spoke >= workingEvery:
		l.spoke = now
		return l.emit(&wire.Working{}, true)
	}
	return nil
}

// headway notes that the sync has moved records of so many bytes: that were applied here, or
// sent, or whose heads were listed. Each moves once.
func (l *link) headway(records int, bytes int64) {
	l.records, l.bytes = l.records+records, l.bytes+bytes
	if l.records >= headwayRecords || l.bytes >= headwayBytes {
		l.waited, l.records, l.bytes = 0, 0, 0
	}
}

// wait fails once this side has waited for its peer for waitFor without headway. Nothing
// else that a peer sends prolongs a sync: that it works, cells, or records that are refused.
// It is ErrBusy: two large equal sets on slow machines may take as long, and nothing is wrong.
// One wait counts as waitOnce at most: this machine may have slept in it.
func (l *link) wait(d time.Duration) error {
	if l.waited += min(d, waitOnce); l.waited > waitFor {
		return fmt.Errorf("%w: this side has waited %v for the peer, in which less than %d records and less than %d bytes of them moved", ErrBusy, l.waited.Round(time.Second), headwayRecords, headwayBytes)
	}
	return nil
}
