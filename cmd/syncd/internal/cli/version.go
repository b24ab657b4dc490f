package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
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
		v, err := daemon.Version(ctx)
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
