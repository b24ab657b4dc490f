package reconcile

import (
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

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
	// another goroutine. wait returns when fn has, and is called from several goroutines.
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
	// Behind, if not empty, is from a sync by the method all that broke off: the key up
	// to which this side has been sent all records. The peer, asked for a sync of
	// everything, sends what lies behind it; the sets are not compared then.
	Behind []byte
	// Received, if not nil, is told how far an empty side, or one with Behind, has been
	// sent all records. It gets the key of the last one that was let in or refused, and
	// how many bytes have arrived since the last call. Where Aside runs the admissions, it
	// is called while the session goes on, one call at a time.
	Received func(key []byte, bytes int64) error
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
