package cli

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
)

// The exit codes of a look at what others hold.
const (
	exitUnknown = problem.ExitTryAgain
	exitDiffers = problem.ExitDiffers
)

// answerTime is how much longer than the daemon a command waits that has told the daemon
// how long to wait.
const answerTime = 5 * time.Second

type waitCmd struct {
	Name    string   `arg:"" optional:"" name:"ns" help:"The namespace's name."`
	NS      string   `name:"ns" help:"The same, as a flag." placeholder:"NS"`
	Peer    []string `help:"A member that is waited for: its id; may be given again." placeholder:"ID"`
	All     bool     `help:"Wait for all of them, which is the default." xor:"count"`
	Count   int      `help:"So many of them are enough." placeholder:"N" xor:"count"`
	Key     string   `help:"Wait for this key alone, as this node holds it." placeholder:"K"`
	Key64   bool     `name:"key64" help:"The key is base64."`
	Version string   `help:"Wait for this version of the key." placeholder:"VERSION" name:"of-version"`
}

func (waitCmd) Help() string {
	return `Waits until all other members, or those named, hold what this node held when the command began, or later versions of it. Members that have lapsed are waited for only where they are named. Each says so itself, of what it holds durably; where pushes do not bring it there soon, a sync does. Prints the members that hold it.

In a namespace of shards the hosts of a shard beside this node are waited for: with --key those of the key's shard, for the version that this node reads or --of-version; without it, those of each shard that this node holds. --count is of the hosts of each.

When --timeout is over first, the exit code is 8, and the error says which member is missing and what it said last.

Examples:
    syncd wait notes --timeout 30s
    syncd wait notes --count 2 --key greeting
    syncd wait notes --peer 12D3KooW… --peer 12D3KooX…`
}

// Run waits.
func (c waitCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	name := c.Name
	switch {
	case name == "" && c.NS == "":
		return problem.Usage("wait for what? name a namespace: syncd wait NS")
	case name == "":
		name = c.NS
	case c.NS != "" && c.NS != name:
		return problem.Usage("two namespaces, %q and %q; a wait is in one", name, c.NS)
	}
	in := api.WaitRequest{Peers: c.Peer, Count: c.Count, Version: c.Version}
	if c.Key != "" {
		key, err := keyArg{Key: c.Key, Key64: c.Key64}.bytes()
		if err != nil {
			return err
		}
		if s := string(key); utf8.ValidString(s) {
			in.Key = &s
		} else {
			in.Key64 = key
		}
	}
	ctx, cancel := a.leaveTime(ctx, &in.Timeout)
	defer cancel()
	waited, err := daemon.Wait(ctx, name, in)
	return a.answer(attempt(err, "wait in %q", name), waited, func() {
		for _, id := range waited.Held {
			a.printf("%s\n", id)
		}
	})
}

// leaveTime tells the daemon for how long to wait, by the --timeout of the command, and gives
// the command the time to hear the answer.
func (a *app) leaveTime(ctx context.Context, timeout *string) (context.Context, context.CancelFunc) {
	if a.Timeout <= 0 {
		return ctx, func() {}
	}
	*timeout = a.Timeout.String()
	longer, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.Timeout+answerTime)
	stop := context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			cancel() // interrupted
		}
	})
	return longer, func() { stop(); cancel() }
}
