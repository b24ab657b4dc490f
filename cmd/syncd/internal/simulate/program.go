// Package simulate is the command line of the simulator, package testnet.
package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"runtime/debug"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/cmd/syncd/internal/progress"
)

// program is the command tree, and what its commands work with.
type program struct {
	Output  string           `short:"o" help:"Form of the output: text or json." enum:"text,json" default:"text"`
	Quiet   bool             `short:"q" help:"Print results only: no progress, no remarks."`
	Timeout time.Duration    `help:"Give up after this long; 0 means never." default:"0s"`
	About   kong.VersionFlag `name:"version" help:"Print the version and exit."`

	Run  runCmd  `cmd:"" help:"Run many simulated nodes through faults, and check every promise."`
	Ls   lsCmd   `cmd:"" help:"List the built-in scenarios."`
	Show showCmd `cmd:"" help:"Print the text of a scenario."`

	stdin          io.Reader
	stdout, stderr io.Writer
}

const description = `Simulates many nodes under faults, and checks them.

Exit codes: 0 ok, 1 error, 2 usage, 4 no such scenario, 8 limit or time-out, 9 the run does not end as expected, 130 interrupted. With -o json an error is a JSON object, too.`

// Process runs the command line of this process and returns its exit code.
func Process() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	signal.Ignore(syscall.SIGPIPE) // the end of a reader is an error like any other
	p := &program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	return p.failed(p.main(ctx, os.Args[1:]))
}

func (p *program) main(ctx context.Context, args []string) error {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
	}
	parser, err := kong.New(p,
		kong.Name("syncd-testnet"),
		kong.Description(description),
		kong.Vars{"version": "syncd-testnet " + version},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
	)
	if err != nil {
		return fmt.Errorf("the command tree: %w", err)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if err != nil {
		return problem.Usage("%w; see: syncd-testnet --help", err)
	}
	for _, given := range command.Path { // often by a variable of the shell that was to hold something
		if f := given.Flag; f != nil && f.Target.Kind() == reflect.String && f.Target.String() == "" {
			return problem.Usage("--%s is empty: give it a value, or leave it out", f.Name)
		}
	}
	if p.Timeout < 0 {
		return problem.Usage("--timeout: %s is negative", p.Timeout)
	}
	if p.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.Timeout)
		defer cancel()
	}
	command.BindTo(ctx, (*context.Context)(nil))
	return command.Run(p)
}

// failed prints an error, if there is one, and returns the exit code.
func (p *program) failed(err error) int {
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return problem.Exit(err)
	}
	out := struct {
		Error string `json:"error"`
		Code  string `json:"code"` // of docs/PROBLEMS.md
		Exit  int    `json:"exit"`
	}{api.Printable(err.Error()), problem.From(err).Code, problem.Exit(err)}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		out.Error += "; allow more than " + p.Timeout.String() + " with --timeout"
	case errors.Is(err, context.Canceled):
		out.Error = strings.ReplaceAll(out.Error, context.Canceled.Error(), "interrupted")
	}
	if !p.json() {
		_, _ = fmt.Fprintf(p.stderr, "syncd-testnet: %s\n", out.Error)
		return out.Exit
	}
	_ = api.WriteJSON(p.stderr, out, "") // standard error is gone, then
	return out.Exit
}

func (p *program) json() bool { return p.Output == "json" }

// printJSON writes v as indented JSON.
func (p *program) printJSON(v any) error { return api.WriteJSON(p.stdout, v, "  ") }

// bars draws progress on standard error, where that is wanted.
func (p *program) bars() *progress.Bars { return progress.New(p.stderr, p.Quiet || p.json()) }

// table lines up columns.
type table struct {
	*tabwriter.Writer
}

func (p *program) table() table { return table{tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)} }

// row adds a row; what cannot be written, Flush says.
func (t table) row(cells ...string) {
	_, _ = fmt.Fprintln(t, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
}
