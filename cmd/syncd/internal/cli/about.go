package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/posener/complete"
	"github.com/willabides/kongplete"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
)

type versionCmd struct {
	Daemon bool `help:"Ask the daemon for its version, too."`
}

func (versionCmd) Help() string {
	return `Examples:
    syncd version
    syncd version --daemon -o json`
}

// Run prints the version.
func (c versionCmd) Run(ctx context.Context, a *app) error {
	all := map[string]api.Program{"program": buildVersion()}
	if c.Daemon {
		daemon, err := a.connect(ctx)
		if err != nil {
			return err
		}
		v, err := client.Ask(ctx, daemon, api.GetVersion, api.None{})
		if err != nil {
			return attempt(err, "the daemon's version")
		}
		all["daemon"] = v
	}
	out := any(all)
	if !c.Daemon {
		out = all["program"]
	}
	return a.answer(nil, out, func() {
		a.printf("syncd %s\n", versionLine(all["program"]))
		if v, ok := all["daemon"]; ok {
			a.printf("daemon %s\n", versionLine(v))
		}
	})
}

func versionLine(v api.Program) string {
	line := v.Version
	if v.Revision != "" {
		line += " revision " + v.Revision
	}
	if v.Modified {
		line += " (modified)"
	}
	return fmt.Sprintf("%s %s %s", line, v.Go, v.Platform)
}

// buildVersion is what the compiler wrote into the program.
func buildVersion() api.Program {
	v := api.Program{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

type pathsCmd struct{}

func (pathsCmd) Help() string {
	return `Example:
    ls -l "$(syncd paths -o json | jq -r .data_dir)"`
}

// Run prints where files lie.
func (pathsCmd) Run(a *app) error {
	addrs, err := a.apiAddrs()
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(a.DataDir)
	if err != nil {
		return err
	}
	paths := []struct{ name, value string }{
		{"data_dir", dir}, {"config", a.file.Path()}, {"api", strings.Join(written(addrs), ",")}, {"token_file", a.tokenFile()},
	}
	out, t := map[string]string{}, a.table("", "")
	for _, p := range paths {
		out[p.name] = p.value
		t.row(p.name, p.value)
	}
	return a.answer(nil, out, t.print)
}

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (completionCmd) Help() string {
	return `Examples:
    source <(syncd completion bash)
    source <(syncd completion zsh)
    syncd completion fish > ~/.config/fish/completions/syncd.fish`
}

// asks makes a shell run this program, with the words typed so far in COMP_LINE, for
// those that may follow.
var asks = map[string]string{
	"bash": "complete -o default -C syncd syncd\n",
	"zsh":  "autoload -U +X bashcompinit && bashcompinit\ncomplete -o default -C syncd syncd\n",
	"fish": "complete -c syncd -a '(COMP_LINE=(commandline -cp) syncd)'\n",
}

// Run prints what the shell reads.
func (c completionCmd) Run(a *app) error {
	a.printf("%s", asks[c.Shell])
	return nil
}

// answerShell answers a shell, if one asks, and ends the process.
func answerShell(parser *kong.Kong) {
	kongplete.Complete(parser,
		kongplete.WithPredictor("level", complete.PredictSet("one", "quorum", "all")),
		kongplete.WithPredictor("placement", complete.PredictSet("hash", "prefix", "writer")))
}

// simulator is the program behind testnet.
const simulator = "syncd-testnet"

type testnetCmd struct {
	Args []string `arg:"" optional:"" empty:"" help:"Its arguments; --help lists them."`
}

// Run starts the simulator, and ends as it does. It stops it when it is interrupted;
// a time-out the simulator knows itself.
func (c testnetCmd) Run(ctx context.Context, a *app) error {
	path, err := findSimulator()
	if err != nil {
		return fmt.Errorf("testnet: the program %s is neither beside this one nor in PATH; "+
			"install it: go install github.com/syncd-io/syncd/cmd/syncd/%[1]s@latest", simulator)
	}
	args := []string{"--output=" + a.Output, "--timeout=" + a.Timeout.String()}
	if a.Quiet {
		args = append(args, "--quiet")
	}
	run := exec.CommandContext(ctx, path, append(args, c.Args...)...)
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, os.Stdout, os.Stderr
	run.Cancel = func() error {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil
		}
		return run.Process.Signal(syscall.SIGTERM)
	}
	err = run.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.Exited() {
		return &saidError{ended.ExitCode()}
	}
	return attempt(err, "testnet")
}

// findSimulator looks beside this program first, where the simulator of the same
// version is.
func findSimulator() (string, error) {
	if self, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), simulator)); err == nil {
			return path, nil
		}
	}
	return exec.LookPath(simulator)
}
