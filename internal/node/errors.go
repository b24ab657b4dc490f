package node

import (
	"errors"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Errors that callers branch on, with errors.Is, beside those of dbadapter and
// reconcile.
var (
	// ErrInvalid: an argument is malformed: a ticket, a name.
	ErrInvalid = membership.ErrInvalid
	// ErrDeclined: a record breaks a rule of the admission.
	ErrDeclined = errors.New("the record is declined")
	// ErrLate is ErrDeclined of a record that a node offers: made anew, it may be taken.
	ErrLate = fmt.Errorf("%w: its version is not later than that up to which the host has collected, or has promised to hold all", ErrDeclined)
	// ErrDenied: one of the two is not a member with the role that this takes.
	ErrDenied = reconcile.ErrDenied
	// ErrFutureVersion: a version too far in the future, or before 2020.
	ErrFutureVersion = hlc.ErrOutOfBounds
)

// DeclinedFor is the error that a reason stands for.
func DeclinedFor(reason wire.Reason) error {
	switch reason {
	case wire.ReasonClock:
		return fmt.Errorf("%w: %w: %s", ErrDeclined, ErrFutureVersion, reason)
	case wire.ReasonFull:
		return fmt.Errorf("%w: %w: %s", ErrDeclined, dbadapter.ErrLimit, reason)
	case wire.ReasonWriter, wire.ReasonSignature:
		return fmt.Errorf("%w: %w: %s", ErrDeclined, ErrDenied, reason)
	case wire.ReasonFloor:
		return ErrLate
	}
	return fmt.Errorf("%w: %s", ErrDeclined, reason)
}
