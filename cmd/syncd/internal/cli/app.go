package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/endpoint"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/cmd/syncd/internal/progress"
	"github.com/syncd-io/syncd/cmd/syncd/internal/settings"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
)

// app is what a command works with.
type app struct {
	*globals
	stdin          io.Reader
	stdout, stderr io.Writer
	parsed         *kong.Context
	daemon         *client.Client // of commands that ask for one
	file           *settings.File
}

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
	{errNoScenario, ""},
	{peer.ErrConflict, ""},
	{peer.ErrDeleted, ""},
	{peer.ErrNotFound, "syncd ls shows the keys of a namespace, syncd peer ls the peers"},
	{problem.ErrToken, "give the daemon's token with --token-file"},
	{peer.ErrUnreachable, "see that the peer runs and that its address is known (syncd peer ls), then try again"},
	{peer.ErrCorrupt, "keep a copy of the data directory, then join the namespace anew from a peer"},
	{peer.ErrNotVerified, "run syncd diff to see what still differs, then sync again"},
	{peer.ErrClosed, "try again when the daemon is up"},
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
		return problem.ExitError // who read the output has seen enough
	}
	text := oneLine(err.Error())
	switch {
	case errors.Is(err, context.Canceled):
		text = "interrupted (" + text + ")"
	case errors.Is(err, context.DeadlineExceeded) && a.globals != nil && a.Timeout > 0:
		text += "; allow more than " + a.Timeout.String() + " with --timeout"
	}
	for _, h := range hints {
		if errors.Is(err, h.err) {
			if h.hint != "" {
				text += "; " + h.hint
			}
			break
		}
	}
	_, _ = fmt.Fprintf(a.stderr, "syncd: %s\n", text)
	return problem.Exit(err)
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

// attempt puts before an error what was attempted. What the daemon's node says
// begins with that already.
func attempt(err error, format string, args ...any) error {
	var p *problem.Problem
	if errors.As(err, &p) && !errors.Is(err, problem.ErrNoNamespace) && !errors.Is(err, problem.ErrUsage) && !errors.Is(err, problem.ErrToken) {
		return err
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

// json tells whether output goes out as JSON.
func (a *app) json() bool { return a.Output == "json" }

// printJSON writes v as indented JSON.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printf writes a result.
func (a *app) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(a.stdout, format, args...)
	return err
}

// remark writes what is no result, unless the user wants quiet.
func (a *app) remark(format string, args ...any) {
	if !a.Quiet && !a.json() {
		_, _ = fmt.Fprintf(a.stderr, format+"\n", args...)
	}
}

// bars draws progress on standard error, where that is wanted.
func (a *app) bars() *progress.Bars { return progress.New(a.stderr, a.Quiet || a.json()) }

// apiAddr is where the daemon serves its API.
func (a *app) apiAddr() (endpoint.Addr, error) {
	if a.API == "" {
		return endpoint.ParseAddr("unix:" + filepath.Join(a.DataDir, "syncd.sock"))
	}
	return endpoint.ParseAddr(a.API)
}

func (a *app) tokenFile() string {
	if a.TokenFile != "" {
		return a.TokenFile
	}
	return filepath.Join(a.DataDir, "api.token")
}

// pollPause is the pause between two looks for a daemon that is starting.
const pollPause = 50 * time.Millisecond

// connect makes the client of the daemon for the commands that take one; close
// ends it. With --wait it waits for a daemon that is still starting.
func (a *app) connect(ctx context.Context) (*client.Client, error) {
	addr, err := a.apiAddr()
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(a.Wait); time.Now().Before(deadline) && ctx.Err() == nil && !endpoint.Answers(ctx, addr); {
		select {
		case <-ctx.Done():
		case <-time.After(pollPause):
		}
	}
	token := ""
	if addr.Network != "unix" {
		if token, err = endpoint.ReadToken(a.tokenFile()); err != nil {
			return nil, fmt.Errorf("%w; %w", err, problem.ErrToken)
		}
	}
	a.daemon = client.New(addr, token)
	return a.daemon, nil
}

func (a *app) close() {
	if a.daemon != nil {
		a.daemon.Close()
	}
}

// maxShown bounds how much of a key is shown, in bytes.
const maxShown = 200

// show writes a key so that it stays on its line: as it is, or quoted. Keys
// longer than any that can be stored are cut.
func show(key []byte) string {
	s := string(key)
	if len(s) > dbadapter.MaxKey {
		return fmt.Sprintf("%q… (%d bytes)", s[:maxShown], len(s))
	}
	plain := s != "" && utf8.ValidString(s) && !strings.HasPrefix(s, `"`)
	for _, r := range s {
		plain = plain && unicode.IsPrint(r)
	}
	if plain {
		return s
	}
	return strconv.Quote(s)
}

// short is the beginning of a peer id's telling part.
func short(id string) string {
	if len(id) <= 16 {
		return id
	}
	return id[:4] + "…" + id[len(id)-8:]
}
