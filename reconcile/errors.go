package reconcile

import (
	"errors"
	"fmt"

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
	// ErrLimit: a bound of the other side was reached.
	ErrLimit = errors.New("over a limit of the peer")
	// ErrPeer: the other side failed for reasons of its own.
	ErrPeer = errors.New("the peer failed")
	// ErrClosed: the session was abandoned.
	ErrClosed = errors.New("session closed")
)

// codes pairs what goes wrong here with what the other side is told.
var codes = []struct {
	err  error
	code wire.Code
}{
	{ErrDenied, wire.CodeDenied},
	{ErrVersion, wire.CodeVersion},
	{ErrBusy, wire.CodeBusy},
	{ErrLimit, wire.CodeLimit},
	{ErrNotVerified, wire.CodeNotVerified},
	{ErrProtocol, wire.CodeProtocol},
	{ErrPeer, wire.CodeInternal},
}

// refusal is the message that tells the other side of err. The text of an
// error of our own (a disk, a bug) stays here.
func refusal(err error) *wire.Refuse {
	m := &wire.Refuse{Code: wire.CodeInternal, Version: wire.Version}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			m.Code = c.code
			break
		}
	}
	switch m.Code {
	case wire.CodeProtocol, wire.CodeNotVerified, wire.CodeVersion:
		m.Text = clip(err.Error())
	}
	return m
}

func clip(s string) string {
	if len(s) <= wire.MaxText {
		return s
	}
	s = s[:wire.MaxText]
	for i := range 4 { // do not cut a character in two
		if c := s[len(s)-1-i]; c < 0x80 {
			return s[:len(s)-i]
		}
	}
	return ""
}

// refused is the error that a Refuse stands for.
func refused(m *wire.Refuse) error {
	err := ErrPeer
	for _, c := range codes {
		if c.code == m.Code {
			err = c.err
		}
	}
	switch {
	case m.Code == wire.CodeVersion:
		return fmt.Errorf("%w: this side speaks version %d, the peer version %d; upgrade the older of the two", err, wire.Version, m.Version)
	case m.Text != "":
		return fmt.Errorf("%w (the peer says: %q)", err, m.Text)
	}
	return err
}

func violation(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...))
}

// forged names a decode that no honest cells lead to as what it is: the other
// side's doing.
func forged(err error) error {
	if errors.Is(err, rateless.ErrForged) || errors.Is(err, rateless.ErrCell) {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return err
}

func unexpected(m wire.Message) error {
	if r, ok := m.(*wire.Refuse); ok {
		return refused(r)
	}
	return violation("message of kind %d out of turn", m.Kind())
}
