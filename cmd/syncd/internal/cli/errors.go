package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"syscall"

	"github.com/syncd-io/syncd/cmd/syncd/internal/advice"
	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/offline"
	"github.com/syncd-io/syncd/peer/status"
)

// hints say what to do about an error, the special before the general.
var hints = []struct {
	err  error
	hint string
}{
	{problem.ErrNoDaemon, ""},
	{problem.ErrUsage, ""},
	{problem.ErrMalformed, ""},
	{peer.ErrInvalid, ""},
	{problem.ErrNoNamespace, "syncd ns ls lists those there are, syncd ns create makes one, syncd join takes part in another node's"},
	{errNoEntry, ""},
	{peer.ErrConflict, ""},
	{peer.ErrDeleted, ""},
	{peer.ErrExpired, ""},
	{offline.ErrNoBackup, ""},
	{peer.ErrCursorExpired, "with syncd: --since start"},
	{peer.ErrNotFound, "syncd ls shows the keys of a namespace, syncd peer ls the peers"},
	{problem.ErrToken, "give the daemon's token with --token-file"},
	{peer.ErrUnconfirmed, ""},
	{peer.ErrPaused, ""},
	{peer.ErrNoRoom, "make room on the disk; writes go on then. syncd del and syncd ns rm need less (syncd serve --disk-reserve)"},
	{peer.ErrTooFew, "try again; if it stays so, syncd status --cluster says which members cannot be reached"},
	{peer.ErrUnreachable, "try again; if it stays so, see that the peers run and that their addresses are known (syncd peer ls)"},
	{offline.ErrBackupDamaged, "syncd backup ls lists the backups; an older one may be whole (syncd restore --generation N)"},
	{peer.ErrFileDamaged, ""},
	{dbadapter.ErrFormat, ""},
	{peer.ErrCorrupt, "stop the daemon, repair the store (syncd verify --repair), and start it again; if that cannot be done, restore a backup, or join the namespace anew from a peer"},
	{peer.ErrLost, "a member that was away for good may come back with it (syncd why NS KEY names the hosts), or a backup of one of them has it; else write it anew, or delete the key"},
	{peer.ErrRejected, `on the node that declined, "syncd rejected NS" lists what, and why`},
	{peer.ErrNotVerified, "run syncd diff to see what still differs, then sync again"},
	{peer.ErrClosed, "try again when the daemon is up"},
}

// ended is the exit code of a command. An output that could not be written did not say what has gone wrong.
func (a *app) ended(err error) int {
	if failed := a.stdout.err; failed != nil && !errors.Is(err, failed) {
		if _, said := errors.AsType[*saidError](err); said {
			err = nil
		}
		err = errors.Join(err, failed)
	}
	return a.failed(err)
}

// failed prints an error, if there is one, and returns the exit code.
func (a *app) failed(err error) int {
	if err == nil {
		return problem.ExitOK
	}
	var said *saidError
	if errors.As(err, &said) {
		return said.exit
	}
	if errors.Is(err, syscall.EPIPE) {
		return problem.ExitError // the reader of the output has seen enough
	}
	out := failure{Error: a.explain(err), Code: problem.From(err).Code, Exit: problem.Exit(err)}
	if !a.json() {
		_, _ = fmt.Fprintf(a.stderr, "syncd: %s\n", out.Error)
		return out.Exit
	}
	if p, ok := errors.AsType[*problem.Problem](err); ok {
		out.Version, out.Item, out.Waited = p.Version, p.Item, p.Waited
	}
	if stopped, ok := errors.AsType[*stoppedImport](err); ok {
		out.Line, out.Kept = stopped.line, &stopped.kept
	}
	if early, ok := errors.AsType[*client.ExportError](err); ok {
		last := api.KeyOf(early.Last)
		out.After, out.After64 = last.Key, last.Key64
	}
	_ = api.WriteJSON(a.stderr, out, "") // standard error is gone, then
	return out.Exit
}

// failure is an error as -o json prints it, on one line of standard error.
type failure struct {
	Error string `json:"error"`
	Code  string `json:"code"` // of docs/PROBLEMS.md
	Exit  int    `json:"exit"`
	// Version is held, where a condition did not hold, or was written, where it was not
	// confirmed.
	Version string `json:"version,omitempty"`
	// Item is the one of a batch that has failed.
	Item *int `json:"item,omitempty"`
	// Waited says which members hold what was waited for.
	Waited *status.Waited `json:"waited,omitempty"`
	// Line is where an import can go on, Kept the records before it.
	Line int    `json:"line,omitempty"`
	Kept *int64 `json:"kept,omitempty"`
	// After is the key behind which an export can go on, After64 the same in base64, where it is not UTF-8.
	After   *string `json:"after,omitempty"`
	After64 []byte  `json:"after64,omitempty"`
}

// explain is an error on one line, with what to do about it.
func (a *app) explain(err error) string {
	return a.here(a.explained(err))
}

func (a *app) explained(err error) string {
	text := strings.ReplaceAll(api.Printable(oneLine(err.Error())), context.Canceled.Error(), "interrupted")
	if errors.Is(err, context.DeadlineExceeded) && a.globals != nil && a.Timeout > 0 {
		text += "; allow more than " + a.Timeout.String() + " with --timeout"
	}
	if h, ok := errors.AsType[*hintedError](err); ok {
		return text + "; " + h.hint
	}
	for _, h := range hints {
		if errors.Is(err, h.err) {
			if h.hint != "" {
				text += "; " + h.hint
			}
			break
		}
	}
	return text
}

// commands matches where a text tells the reader to type a command here. Commands for another
// node are in quotes.
var commands = regexp.MustCompile(`(^|[:;,] |\(|run )syncd ([a-z])`)

// here repeats in such commands the flags that say which node is meant: without them, another
// one would be asked, or made.
func (a *app) here(text string) string {
	if a.parsed == nil {
		return text
	}
	flags := ""
	for _, f := range a.parsed.Model.Flags {
		switch f.Name {
		case "data-dir", "config", "api", "token-file":
			if given(a.parsed, f) {
				flags += " --" + f.Name + " " + advice.Word(setTo(f))
			}
		}
	}
	return commands.ReplaceAllString(text, "${1}syncd"+strings.ReplaceAll(flags, "$", "$$")+" ${2}")
}

// oneLine joins the lines of an error, as some libraries write them.
func oneLine(s string) string {
	var parts []string
	for line := range strings.Lines(s) {
		if line = strings.Trim(line, " \t\r\n:;*"); line != "" {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, "; ")
}

// saidError ends a command whose output says already what went wrong.
type saidError struct{ exit int }

func (e *saidError) Error() string { return fmt.Sprintf("exit code %d", e.exit) }

// hintedError is an error with what to do about it, in place of its hint above.
type hintedError struct {
	error
	hint string
}

func (h *hintedError) Unwrap() error { return h.error }

// lacking says where what was not found would be listed.
func lacking(err error, format string, args ...any) error {
	if !errors.Is(err, peer.ErrNotFound) || errors.Is(err, problem.ErrNoNamespace) {
		return err
	}
	return &hintedError{err, fmt.Sprintf(format, args...)}
}

// attempt puts before an error what was attempted. What the daemon's node says
// begins with that already; nil stays nil.
func attempt(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	var p *problem.Problem
	if errors.As(err, &p) && !errors.Is(err, problem.ErrNoNamespace) && !errors.Is(err, problem.ErrUsage) && !errors.Is(err, problem.ErrToken) {
		return err
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}
