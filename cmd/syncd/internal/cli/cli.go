// Package cli is the command line: one file a command, all of them clients of
// the daemon's HTTP API but for serve, init, demo and bench; testnet starts another program.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

// globals are the flags of all commands. Those marked as settings may stand
// in the configuration file.
type globals struct {
	DataDir   string           `help:"Folder of the node: its identity, secrets and records." placeholder:"DIR" default:"${data_dir}" setting:""`
	Config    string           `help:"Configuration file, YAML. Default: config.yaml in the data directory." placeholder:"FILE" env:"SYNCD_CONFIG"`
	API       []string         `name:"api" help:"Where the daemon serves its API: unix:PATH or http://HOST:PORT on loopback; may be given again, and commands use the first. unix: alone, the default, is syncd.sock in the data directory." placeholder:"ADDR" setting:""`
	TokenFile string           `help:"File of the bearer token that the API demands over TCP. Default: api.token in the data directory." placeholder:"FILE" setting:""`
	Output    string           `short:"o" help:"Form of the output: text or json." enum:"text,json" default:"text" setting:""`
	Quiet     bool             `short:"q" help:"Print results only: no progress, no remarks." setting:""`
	Verbose   bool             `short:"v" help:"Log each step." setting:""`
	LogFormat string           `help:"Form of the log on standard error: console or json." enum:"console,json" default:"console" setting:""`
	Await     time.Duration    `help:"Wait this long for a daemon that is still starting." default:"0s" setting:""`
	About     kong.VersionFlag `name:"version" help:"Print the version and exit."`
	Timeout   time.Duration    `help:"Give up after this long; 0 means never." default:"0s" setting:""`
}

// root is the command tree.
type root struct {
	globals `embed:"" group:"global"`

	Demo       demoCmd       `cmd:"" group:"start" help:"Show the main job: two nodes find what differs, exchange it and prove it."`
	Init       initCmd       `cmd:"" group:"start" help:"Make the data directory and the node's identity."`
	Serve      serveCmd      `cmd:"" group:"start" help:"Run the daemon."`
	Status     statusCmd     `cmd:"" group:"start" help:"Show the node, its namespaces, peers and last syncs."`
	NS         nsCmd         `cmd:"" name:"ns" group:"share" help:"Make, list and remove namespaces."`
	Invite     inviteCmd     `cmd:"" group:"share" help:"Make a ticket with which nodes can join a namespace; list and revoke tickets."`
	Join       joinCmd       `cmd:"" group:"share" help:"Join a namespace with a ticket."`
	Member     memberCmd     `cmd:"" group:"share" help:"List, change and remove the members of a namespace."`
	Peer       peerCmd       `cmd:"" group:"share" help:"Remember, list and forget addresses of peers."`
	Put        putCmd        `cmd:"" group:"records" help:"Write a record."`
	Get        getCmd        `cmd:"" group:"records" help:"Print a record's value."`
	Del        delCmd        `cmd:"" group:"records" help:"Delete a record."`
	Batch      batchCmd      `cmd:"" group:"records" help:"Write and delete records, all or none."`
	Ls         lsCmd         `cmd:"" group:"records" help:"List keys."`
	Watch      watchCmd      `cmd:"" group:"records" help:"Print what changes, as it changes."`
	Import     importCmd     `cmd:"" group:"records" help:"Write records from JSON lines."`
	Export     exportCmd     `cmd:"" group:"records" help:"Print all records as JSON lines."`
	Why        whyCmd        `cmd:"" group:"sync" help:"Say why a key is, or is not, the same at the other members."`
	Locate     locateCmd     `cmd:"" group:"sync" help:"Say which members hold a key of a namespace of shards."`
	Wait       waitCmd       `cmd:"" group:"sync" help:"Wait until the other members hold what this node holds."`
	Sync       syncCmd       `cmd:"" group:"sync" help:"Make this node's records and a peer's equal."`
	Pause      pauseCmd      `cmd:"" group:"sync" help:"Take a namespace out of all syncs on this node."`
	Resume     resumeCmd     `cmd:"" group:"sync" help:"Let a namespace take part in syncs again."`
	Diff       diffCmd       `cmd:"" group:"sync" help:"Show what differs from a peer, and what a sync would move."`
	Conflicts  conflictsCmd  `cmd:"" group:"records" help:"List, show and restore what lost against a write that had not seen it."`
	Rejected   rejectedCmd   `cmd:"" group:"records" help:"List what was refused or set aside, show and restore the latter."`
	GC         gcCmd         `cmd:"" name:"gc" group:"records" help:"Take out deleted records that all members are past, and say what holds the rest back."`
	Verify     verifyCmd     `cmd:"" group:"records" help:"Read the store and all records through, and say what is damaged."`
	Restamp    restampCmd    `cmd:"" group:"records" help:"Give what was written while the clock was wrong a version of now."`
	Backup     backupCmd     `cmd:"" group:"records" help:"Back the node up while it runs; list and verify backups."`
	Restore    restoreCmd    `cmd:"" group:"records" help:"Make a node's data directory of a backup."`
	Migrate    migrateCmd    `cmd:"" group:"records" help:"Move a node's records to another kind of database."`
	Bench      benchCmd      `cmd:"" group:"about" help:"Measure on this machine."`
	Testnet    testnetCmd    `cmd:"" passthrough:"" group:"about" help:"Simulate many nodes under faults, and check them: starts syncd-testnet."`
	Config_    configCmd     `cmd:"" name:"config" group:"about" help:"Show or check the configuration."`
	Paths      pathsCmd      `cmd:"" group:"about" help:"Print where files lie."`
	Version    versionCmd    `cmd:"" group:"about" help:"Print the version."`
	Completion completionCmd `cmd:"" group:"about" help:"Print a completion script for a shell."`
}

const description = `Keeps sets of records equal on many machines, for a cost that follows the difference between them, not their size.

The settings, which are the flags of all commands and those of serve, have environment variables, which --help names; an unknown one that begins with SYNCD_ is an error. A flag wins over the variable, that over the configuration file, the file over the default.

Exit codes: 0 ok, 1 error, 2 usage, 3 daemon unreachable, 4 not found, 5 try again (peer down), 6 denied, 7 corrupt, 8 limit or time-out, 9 differs, 10 conflict (the condition of a write did not hold), 130 interrupted. With -o json an error is a JSON object, too.`

var groups = []kong.Group{
	{Key: "start", Title: "Start here"},
	{Key: "share", Title: "Share with other nodes"},
	{Key: "records", Title: "Records"},
	{Key: "sync", Title: "Syncs"},
	{Key: "about", Title: "About"},
	{Key: "global", Title: "Flags of all commands"},
}

// Main runs the command line and returns the exit code.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: &input{stdin}, stdout: &output{Writer: stdout}, stderr: stderr}
	switch { // the overview, or the help of a command
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help":
		args = append(slices.Clone(args[1:]), "--help")
	}
	parser, err := a.parser()
	if err != nil {
		return a.failed(err)
	}
	answerShell(parser)
	kctx, err := parser.Parse(args)
	if err != nil {
		a.Output = outputOf(args)
		var p *kong.ParseError
		if errors.As(err, &p) && p.Context != nil && p.Context.Command() != "" {
			return a.failed(problem.Usage("%w; see: syncd %s --help", err, commandName(p.Context)))
		}
		return a.failed(problem.Usage("%w; see: syncd --help", err))
	}
	a.parsed = kctx
	if err := cmp.Or(refuseEmpty(kctx), checkSettings(kctx), a.checkDataDir()); err != nil {
		return a.failed(err)
	}
	if a.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.Timeout)
		defer cancel()
	}
	kctx.BindTo(ctx, (*context.Context)(nil))
	if err := kctx.BindSingletonProvider(a.connect); err != nil {
		return a.failed(err)
	}
	defer a.close()
	return a.ended(kctx.Run(a))
}

// outputOf finds the form of the output that a command line asks for, though it
// does not parse.
func outputOf(args []string) string {
	form := os.Getenv("SYNCD_OUTPUT")
	for i, arg := range args {
		switch {
		case arg == "-ojson", arg == "-o=json", arg == "--output=json":
			form = "json"
		case (arg == "-o" || arg == "--output") && i+1 < len(args):
			form = args[i+1]
		}
	}
	return form
}

// commandName is the command's path without its arguments.
func commandName(k *kong.Context) string {
	var names []string
	for _, p := range k.Path {
		if p.Command != nil {
			names = append(names, p.Command.Name)
		}
	}
	return strings.Join(names, " ")
}

func (a *app) parser() (*kong.Kong, error) {
	tree := &root{}
	a.globals = &tree.globals
	k, err := kong.New(tree,
		kong.Name("syncd"),
		kong.Description(description),
		kong.Writers(a.stdout, a.stderr),
		kong.Vars{"data_dir": defaultDataDir(), "watch_log": strconv.Itoa(peer.DefaultWatchLog), "version": "syncd " + versionLine(buildVersion())},
		kong.PostBuild(nameVariables),
		kong.KindMapper(reflect.String, kong.MapperFunc(anyBytes)),
		kong.ExplicitGroups(groups),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
		kong.WithBeforeResolve(a.loadFile),
	)
	if err != nil {
		return nil, fmt.Errorf("the command tree: %w", err)
	}
	return k, nil
}

// anyBytes takes a word of the command line as it is. kong's own mapper passes
// strings through JSON, which replaces all bytes that are not UTF-8: keys that
// differ would become one, and files would not be found.
func anyBytes(c *kong.DecodeContext, target reflect.Value) error {
	word, err := c.Scan.PopValue("string")
	if err != nil {
		return err
	}
	text, ok := word.Value.(string)
	if !ok {
		return fmt.Errorf("want a string, not %v", word.Value)
	}
	target.SetString(text)
	return nil
}

// defaultDataDir follows the XDG base directory specification. It is empty where the
// environment names no absolute path: no default rests on the working directory.
func defaultDataDir() string {
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "syncd")
	}
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "syncd")
	}
	return ""
}

// checkDataDir refuses a command that works with a node where none is named.
func (a *app) checkDataDir() error {
	first, _, _ := strings.Cut(commandName(a.parsed), " ")
	switch first {
	case "demo", "bench", "testnet", "version", "completion":
		return nil
	}
	if a.DataDir == "" {
		return problem.Usage("no HOME and no XDG_STATE_HOME: give --data-dir")
	}
	return nil
}

// Process runs the command line of this process and returns its exit code.
func Process() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	// A reader that has seen enough (syncd export | head) ends the command by
	// an error like any other, so that it cleans up.
	signal.Ignore(syscall.SIGPIPE)
	return Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}
