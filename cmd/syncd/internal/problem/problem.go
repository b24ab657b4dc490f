// Package problem carries errors over HTTP and to exit codes. A daemon turns
// an error into a Problem (RFC 9457) with a stable code; a client turns the
// Problem back into an error for which errors.Is gives the same answers, and
// from which the exit code of a command derives.
package problem

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"syscall"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/offline"
	"github.com/syncd-io/syncd/peer/status"
)

// Errors of the command line and the HTTP API, beside those of package peer.
var (
	// ErrUsage: the request or command line is not well formed.
	ErrUsage = errors.New("usage")
	// ErrMalformed: the data given is not in the form it must have.
	ErrMalformed = errors.New("malformed")
	// ErrRefused: an import has refused records for their dates.
	ErrRefused = errors.New("records were refused for their dates")
	// ErrNoDaemon: no daemon answers.
	ErrNoDaemon = errors.New("no daemon answers")
	// ErrToken: the bearer token is missing or wrong.
	ErrToken = errors.New("the token is missing or wrong")
	// ErrHost: a request over TCP names another host than this machine.
	ErrHost = errors.New("the request does not name this machine as its host; use localhost or 127.0.0.1")
	// ErrNoNamespace: this node has no namespace of that name.
	ErrNoNamespace = errors.New("no such namespace here")
	// ErrDiffers: two sets are not the same.
	ErrDiffers = errors.New("they differ")
)

// Exit codes.
const (
	ExitOK          = 0
	ExitError       = 1
	ExitUsage       = 2
	ExitNoDaemon    = 3
	ExitNotFound    = 4
	ExitTryAgain    = 5
	ExitDenied      = 6
	ExitCorrupt     = 7
	ExitLimit       = 8
	ExitDiffers     = 9
	ExitConflict    = 10
	ExitInterrupted = 130
)

// kinds lists the errors that callers branch on, the special before the
// general: the first that errors.Is finds names the problem.
var kinds = []struct {
	code   string
	err    error
	status int
	exit   int
}{
	{"usage", ErrUsage, http.StatusBadRequest, ExitUsage},
	{"conflict", peer.ErrConflict, http.StatusPreconditionFailed, ExitConflict}, // also of a conditional write that one host has taken, and lost
	{"unconfirmed", peer.ErrUnconfirmed, http.StatusGatewayTimeout, ExitLimit},  // before all others: hosts hold the record, or may
	{"invalid", peer.ErrInvalid, http.StatusBadRequest, ExitUsage},
	{"malformed", ErrMalformed, http.StatusBadRequest, ExitError},
	{"refused", ErrRefused, http.StatusConflict, ExitError},
	{"no_daemon", ErrNoDaemon, http.StatusBadGateway, ExitNoDaemon},
	{"token", ErrToken, http.StatusUnauthorized, ExitDenied},
	{"host", ErrHost, http.StatusForbidden, ExitDenied},
	{"no_namespace", ErrNoNamespace, http.StatusNotFound, ExitNotFound},
	{"deleted", peer.ErrDeleted, http.StatusGone, ExitNotFound},
	{"expired", peer.ErrExpired, http.StatusGone, ExitNotFound},
	{"not_found", peer.ErrNotFound, http.StatusNotFound, ExitNotFound},
	{"cursor_expired", peer.ErrCursorExpired, http.StatusGone, ExitNotFound},
	{"exists", peer.ErrExists, http.StatusConflict, ExitError},
	{"held_here", peer.ErrHeldHere, http.StatusConflict, ExitError},
	{"no_majority", peer.ErrNoMajority, http.StatusConflict, ExitError},
	{"not_handed_over", peer.ErrNotHandedOver, http.StatusConflict, ExitError},
	{"removed", peer.ErrRemoved, http.StatusForbidden, ExitDenied},
	{"twin", peer.ErrTwin, http.StatusConflict, ExitDenied},
	{"denied", peer.ErrDenied, http.StatusForbidden, ExitDenied},
	{"backup_damaged", offline.ErrBackupDamaged, http.StatusInternalServerError, ExitCorrupt},
	{"file_damaged", peer.ErrFileDamaged, http.StatusInternalServerError, ExitCorrupt},
	{"lost", peer.ErrLost, http.StatusInternalServerError, ExitCorrupt},
	{"corrupt", peer.ErrCorrupt, http.StatusInternalServerError, ExitCorrupt},
	{"not_verified", peer.ErrNotVerified, http.StatusConflict, ExitDiffers},
	{"rejected", peer.ErrRejected, http.StatusConflict, ExitDiffers},
	{"differs", ErrDiffers, http.StatusConflict, ExitDiffers},
	{"future_version", peer.ErrFutureVersion, http.StatusUnprocessableEntity, ExitLimit},
	{"no_room", peer.ErrNoRoom, http.StatusInsufficientStorage, ExitLimit},
	{"limit", peer.ErrLimit, http.StatusRequestEntityTooLarge, ExitLimit},
	{TooFew, peer.ErrTooFew, http.StatusServiceUnavailable, ExitTryAgain}, // before unreachable, which it is, too
	{"away", peer.ErrAway, http.StatusServiceUnavailable, ExitTryAgain},
	{"unreachable", peer.ErrUnreachable, http.StatusBadGateway, ExitTryAgain}, // also where each dial took too long
	{"timeout", context.DeadlineExceeded, http.StatusGatewayTimeout, ExitLimit},
	{"paused", peer.ErrPaused, http.StatusServiceUnavailable, ExitTryAgain},
	{"busy", peer.ErrBusy, http.StatusServiceUnavailable, ExitTryAgain},
	{"locked", peer.ErrLocked, http.StatusConflict, ExitError},
	{"closed", peer.ErrClosed, http.StatusServiceUnavailable, ExitTryAgain},
	{"interrupted", context.Canceled, http.StatusServiceUnavailable, ExitInterrupted},
}

// TypeBase and a code are the type of a problem: a page that tells what it means
// and what to do.
const TypeBase = "https://github.com/syncd-io/syncd/blob/main/docs/PROBLEMS.md#"

// Problem is the body of an error response, application/problem+json.
type Problem struct {
	Type   string `json:"type" format:"uri" doc:"identifies the kind of problem: docs/PROBLEMS.md#, and the code"`
	Title  string `json:"title" doc:"the kind of problem"`
	Status int    `json:"status" doc:"the HTTP status"`
	Detail string `json:"detail" doc:"what was attempted, on what, and what went wrong"`
	Code   string `json:"code" doc:"stable name of the kind, for programs"`
	// Version is set by a conditional write whose condition did not hold.
	Version string `json:"version,omitempty" doc:"the version of the record that is held, if any, when a condition did not hold, or the record was deleted or has expired; the version that was written, when too few members have confirmed it in time"`
	// Item is set by a batch of which one item has failed.
	Item *int `json:"item,omitempty" doc:"the item of a batch that has failed, counted from 0"`
	// Versions is set by a batch that too few hosts have confirmed in time.
	Versions []string `json:"versions,omitempty" doc:"the versions that a batch has written, in the order of its items, when too few hosts have confirmed it in time"`
	// Line and Kept are set by an import that stopped.
	Line int   `json:"line,omitempty" doc:"the line at which an import stopped"`
	Kept int64 `json:"kept,omitempty" doc:"how many records of the request were imported before it"`
	// Import is set by an import that stopped and had refused records before that.
	Import *api.ImportResult `json:"import,omitempty" doc:"what an import did before the line at which it stopped, if it refused records"`
	// Waited is set by a wait that was over before as many members held it as were asked for.
	Waited *status.Waited `json:"waited,omitempty" doc:"which members hold what was waited for, and what the others said"`
	// Report is set by a sync that failed.
	Report *api.Report `json:"report,omitempty" doc:"what a sync did before it failed"`
}

// TooFew is the code of a request that too few hosts have answered.
const TooFew = "too_few"

// internal is the code of all other errors.
const internal = "internal"

// From describes an error.
func From(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	p = &Problem{Title: internal, Status: http.StatusInternalServerError, Detail: err.Error(), Code: internal}
	for _, k := range kinds {
		if is(err, k.err) {
			p.Code, p.Title, p.Status = k.code, k.err.Error(), k.status
			break
		}
	}
	p.Type = TypeBase + p.Code
	return p
}

// FromStatus describes a refusal that has an HTTP status only.
func FromStatus(status int, detail string) *Problem {
	p := &Problem{Title: http.StatusText(status), Status: status, Detail: detail, Code: internal}
	switch {
	case status == http.StatusRequestEntityTooLarge:
		p.Code = "limit"
	case status == http.StatusUnauthorized:
		p.Code = "token"
	case status >= 400 && status < 500:
		p.Code = "usage"
	}
	p.Type = TypeBase + p.Code
	return p
}

// Error is the detail.
func (p *Problem) Error() string { return p.Detail }

// GetStatus makes the problem a response of package huma.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType marks the JSON form as a problem.
func (p *Problem) ContentType(ct string) string {
	if ct == "application/json" {
		return "application/problem+json"
	}
	return ct
}

// Unwrap is the error that the code stands for, if it is a known one.
func (p *Problem) Unwrap() error {
	for _, k := range kinds {
		if k.code == p.Code {
			return k.err
		}
	}
	return nil
}

// Exit is the exit code of a command that ended with err.
func Exit(err error) int {
	if err == nil {
		return ExitOK
	}
	for _, k := range kinds {
		if is(err, k.err) {
			return k.exit
		}
	}
	return ExitError
}

// is is errors.Is; the system's own words for a disk without room are ErrNoRoom, too.
func is(err, kind error) bool {
	return errors.Is(err, kind) || errors.Is(kind, peer.ErrNoRoom) &&
		(durable.NoRoom(err) || errors.Is(err, syscall.EROFS))
}

// Usage makes an ErrUsage whose text does not say so.
func Usage(format string, args ...any) error {
	return &marked{fmt.Errorf(format, args...), ErrUsage}
}

// Malformed makes an ErrMalformed of an error.
func Malformed(err error) error { return &marked{err, ErrMalformed} }

// marked is an error that is also another one, without its text.
type marked struct {
	error
	mark error
}

func (m *marked) Is(target error) bool { return target == m.mark }

func (m *marked) Unwrap() error { return m.error }
