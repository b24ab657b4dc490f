package reconcile

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Errors that callers branch on, with errors.Is.
var (
	// ErrNotVerified: the decoded differences do not explain the gap between
	// the two sets. Nothing was applied on the strength of them.
	ErrNotVerified = errors.New("the sets could not be proved equal")
	// ErrDenied: the other side does not take this node for a member.
	ErrDenied = errors.New("denied")
	// ErrVersion: the other side speaks another version of the protocol.
	ErrVersion = errors.New("another protocol version")
	// ErrProtocol: the other side broke the protocol.
	ErrProtocol = errors.New("protocol violation")
	// ErrBusy: the other side, or this one, cannot do it now; try again.
	ErrBusy = errors.New("busy, try again")
	// ErrTurn is ErrBusy: the records of other peers come first; the turn of this sync
	// will come.
	ErrTurn = fmt.Errorf("%w: the records of another peer come first", ErrBusy)
	// ErrPaused: a person has paused the namespace on one of the two sides, or one side's
	// syncs with the other. Try again once that was resumed.
	ErrPaused = errors.New("paused, try again later")
	// ErrUnreachable: no connection to the peer, or it broke; try again. What carries a
	// session wraps it around what its network says.
	ErrUnreachable = errors.New("the peer cannot be reached")
	// ErrLimit: a bound of the other side was reached.
	ErrLimit = errors.New("over a limit of the peer")
	// ErrPeer: the other side failed for reasons of its own.
	ErrPeer = errors.New("the peer failed")
	// ErrListsDiffer: the two sides have different lists of members, which are to
	// be synced first.
	ErrListsDiffer = errors.New("the two sides have different lists of members")
	// ErrTwin: the other side knows another node that runs with this one's
	// identity.
	ErrTwin = errors.New("another node that runs has the same identity")
	// ErrRemoved: this node was a member and has been removed. What arrives of it
	// is a RemovedError.
	ErrRemoved = errors.New("removed from the list of members")
	// ErrClosed: the session was abandoned.
	ErrClosed = errors.New("session closed")
)

// RemovedError is ErrRemoved with the statements that show the member why, as the other
// side has them. Each follows those that it names, and the receiver checks them. A
// responder's Heed returns one to tell a peer: of 1 to wire.MaxStatements, each of 1 to
// wire.MaxStatement bytes.
type RemovedError struct{ Statements [][]byte }

func (e *RemovedError) Error() string { return ErrRemoved.Error() }

// Unwrap makes a RemovedError an ErrRemoved.
func (e *RemovedError) Unwrap() error { return ErrRemoved }

// codes pairs what goes wrong here with what the other side is told.
var codes = []struct {
	err  error
	code wire.Code
}{
	{ErrDenied, wire.CodeDenied},
	{ErrVersion, wire.CodeVersion},
	{ErrTurn, wire.CodeTurn},
	{ErrBusy, wire.CodeBusy},
	{ErrPaused, wire.CodePaused},
	{ErrLimit, wire.CodeLimit},
	{ErrNotVerified, wire.CodeNotVerified},
	{ErrProtocol, wire.CodeProtocol},
	{ErrPeer, wire.CodeInternal},
	{ErrRemoved, wire.CodeRemoved},
	{ErrListsDiffer, wire.CodeListsDiffer},
	{ErrTwin, wire.CodeTwin},
}

// Refusal is the message that tells the other side of err, also where no session is begun.
// The text of an error of our own (a disk, a bug) stays here.
func Refusal(err error) *wire.Refuse {
	m := &wire.Refuse{Code: wire.CodeInternal, Version: wire.Version}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			m.Code = c.code
			break
		}
	}
	switch m.Code {
	case wire.CodeDenied, wire.CodeInternal: // nothing for strangers, and nothing of this node's own troubles
	case wire.CodeTwin: // the other side knows what that means
	case wire.CodeRemoved:
		// Without statements it would be a claim that no peer can check.
		removed, ok := errors.AsType[*RemovedError](err)
		if !ok || !removed.fits() {
			m.Code = wire.CodeDenied
			break
		}
		m.Statements = removed.Statements
	default:
		m.Text = clip(err.Error())
	}
	return m
}

// fits reports whether the statements can travel.
func (e *RemovedError) fits() bool {
	return len(e.Statements) > 0 && len(e.Statements) <= wire.MaxStatements &&
		!slices.ContainsFunc(e.Statements, func(s []byte) bool { return len(s) == 0 || len(s) > wire.MaxStatement })
}

// clip is a text that fits a Refuse: no longer than it may be, and no character of it cut in two.
func clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), wire.MaxText)], "") }

// Refused is the error that a Refuse stands for.
func Refused(m *wire.Refuse) error {
	err := ErrPeer
	for _, c := range codes {
		if c.code == m.Code {
			err = c.err
		}
	}
	switch {
	case m.Code == wire.CodeRemoved:
		removed := &RemovedError{}
		for _, s := range m.Statements {
			removed.Statements = append(removed.Statements, bytes.Clone(s))
		}
		return removed
	case m.Code == wire.CodeVersion && m.Version == wire.Version:
		return fmt.Errorf("%w: both sides speak version %d, but map records to cells in different ways (this one in way %d); upgrade the older of the two",
			err, wire.Version, rateless.MappingVersion)
	case m.Code == wire.CodeVersion:
		return fmt.Errorf("%w: this side speaks version %d, the peer version %d; upgrade the older of the two", err, wire.Version, m.Version)
	case m.Code == wire.CodePaused:
		return fmt.Errorf("%w: the peer takes part in no syncs of this namespace, or in none with this node, until a person resumes it there", err)
	case m.Text != "" && m.Text != err.Error():
		return fmt.Errorf("%w (the peer says: %q)", err, strings.TrimPrefix(m.Text, err.Error()+": "))
	}
	return err
}

func violation(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...))
}

func unexpected(m wire.Message) error {
	if r, ok := m.(*wire.Refuse); ok {
		return Refused(r)
	}
	return violation("message of kind %d out of turn", m.Kind())
}
