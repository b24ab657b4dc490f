package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/endpoint"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/cmd/syncd/internal/progress"
	"github.com/syncd-io/syncd/cmd/syncd/internal/settings"
	"github.com/syncd-io/syncd/dbadapter"
)

// app is what a command works with.
type app struct {
	*globals
	stdin  io.Reader
	stdout *output
	stderr io.Writer
	parsed *kong.Context
	daemon *client.Client // of commands that ask for one
	file   *settings.File
}

// json tells whether output goes out as JSON.
func (a *app) json() bool { return a.Output == "json" }

// print prints what was found, v: as JSON, or by text.
func (a *app) print(v any, text func()) {
	if a.json() {
		a.printJSON(v)
	} else {
		text()
	}
}

// answer ends a command: where it has not failed, it prints what was found.
func (a *app) answer(err error, v any, text func()) error {
	if err == nil {
		a.print(v, text)
	}
	return err
}

// done is answer with a remark for the text.
func (a *app) done(err error, v any, format string, args ...any) error {
	return a.answer(err, v, func() { a.remark(format, args...) })
}

// printJSON writes v as indented JSON. Like printf, it leaves its error to the end of the command: see output.
func (a *app) printJSON(v any) { a.stdout.failed(api.WriteJSON(a.stdout, v, "  ")) }

// printf writes a result.
func (a *app) printf(format string, args ...any) { _, _ = fmt.Fprintf(a.stdout, format, args...) }

// remark tells on standard error what is not part of the result, unless --quiet
// or -o json is given.
func (a *app) remark(format string, args ...any) {
	if !a.Quiet && !a.json() {
		_, _ = fmt.Fprintln(a.stderr, a.here(fmt.Sprintf(format, args...)))
	}
}

// bars draws progress on standard error, where that is wanted.
func (a *app) bars() *progress.Bars { return progress.New(a.stderr, a.Quiet || a.json()) }

// defaultSocket is the API address that stands for the socket in the data directory.
const defaultSocket = "unix:"

// apiAddrs are where the daemon serves its API, at least one.
func (a *app) apiAddrs() ([]endpoint.Addr, error) {
	given := slices.DeleteFunc(slices.Clone(a.API), func(text string) bool { return text == "" })
	if len(given) == 0 {
		given = []string{defaultSocket}
	}
	var addrs []endpoint.Addr
	for _, text := range given {
		if text == defaultSocket {
			text += filepath.Join(a.DataDir, "syncd.sock")
		}
		addr, err := endpoint.ParseAddr(text)
		if err != nil {
			return nil, err
		}
		if slices.Contains(addrs, addr) {
			return nil, problem.Usage("API address %s: it is given twice", addr)
		}
		addrs = append(addrs, addr)
	}
	return addrs, nil
}

// apiValid reports API addresses that a daemon could not serve.
func apiValid(given []string) error {
	_, err := (&app{globals: &globals{API: given}}).apiAddrs()
	return err
}

// written are API addresses as a setting has them.
func written(addrs []endpoint.Addr) (texts []string) {
	for _, addr := range addrs {
		texts = append(texts, addr.String())
	}
	return texts
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
// ends it. With --await it waits for a daemon that is still starting.
func (a *app) connect(ctx context.Context) (*client.Client, error) {
	addrs, err := a.apiAddrs()
	if err != nil {
		return nil, err
	}
	addr := addrs[0]
	for deadline := time.Now().Add(a.Await); time.Now().Before(deadline) && ctx.Err() == nil && !endpoint.Answers(ctx, addr); {
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

// short abbreviates a peer id to its first 4 and last 8 characters.
func short(id string) string {
	if len(id) <= 16 {
		return id
	}
	return id[:4] + "…" + id[len(id)-8:]
}
