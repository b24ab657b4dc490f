package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/cmd/syncd/internal/progress"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/reconcile/wire"
)

type syncCmd struct {
	Peer   string `arg:"" optional:"" help:"Peer id, or address that ends in /p2p/ and one. Default: every member in turn."`
	NS     string `name:"ns" help:"The namespace's name. Default: all." placeholder:"NS"`
	Prefix string `help:"Only keys that begin with it." placeholder:"P" empty:""`
	Dir    string `help:"Which way records may go: both, pull or push." enum:"both,pull,push" default:"both"`
	Method string `help:"How to find the differences: auto, sketch or all." enum:"auto,sketch,all" default:"auto"`
}

func (syncCmd) Help() string {
	return `Prints a line for each sync. The exit code is the highest of all. It is 0 if each sync proved that both sides hold the same; with -o json, verified is true then.

With --dir pull or push the exit code is 0 if all that the sync found to go that way has gone. Where something is left for the other direction, the line says so, and verified is false: the two sides differ.

Examples:
    syncd sync
    syncd sync 12D3KooW… --ns notes
    syncd sync /ip4/192.0.2.7/tcp/4747/p2p/12D3KooW… --ns notes --dir pull
    syncd sync --ns notes --prefix pictures/ -o json`
}

// syncTarget is one sync to be done.
type syncTarget struct{ ns, peer string }

// Run syncs with each target in turn.
func (c syncCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	targets, err := c.targets(ctx, daemon)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		a.remark("no peer to sync with: no namespace has another member; invite one with: syncd invite NS")
	}
	reports := []syncOutcome{}
	worst := 0
	bars := a.bars()
	for i, t := range targets {
		stop := headway(ctx, bars, daemon, "sync", t)
		report, err := daemon.Sync(ctx, api.SyncRequest{Peer: t.peer, NS: t.ns, Dir: c.Dir, Method: c.Method, Prefix64: []byte(c.Prefix)})
		stop()
		if err != nil {
			if errors.Is(err, peer.ErrRejected) {
				err = &hintedError{err, "on the node that declined, \"syncd rejected NS\" lists them with the reasons"}
			}
			worst = max(worst, a.failed(attempt(err, "sync %q with %s", t.ns, t.peer)))
		}
		reports = append(reports, syncOutcome{report, problem.Exit(err)})
		if !a.json() && (err == nil || report.Applied+report.Sent > 0) {
			a.printf("%s\n", syncLine(t, report, c.Dir))
		}
		if left := len(targets) - i - 1; left > 0 && (isOver(ctx, err) || a.stdout.err != nil) {
			a.remark("%d syncs were not begun", left)
			break
		}
	}
	switch {
	case !a.json():
	case c.Peer != "" && c.NS != "" && len(reports) == 1:
		a.printJSON(reports[0]) // one peer and namespace were asked for
	default:
		a.printJSON(reports)
	}
	if worst != 0 {
		return &saidError{worst}
	}
	return nil
}

// isOver tells whether an error would be that of each further sync, too: the
// daemon is gone or ending, or the command is.
func isOver(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, problem.ErrNoDaemon) || errors.Is(err, peer.ErrClosed)
}

// syncOutcome is a report with the exit code of its sync.
type syncOutcome struct {
	api.Report
	Exit int `json:"exit"`
}

// targets lists the members of the namespaces asked for, or the peer asked
// for in those of them that it is a member of.
func (c syncCmd) targets(ctx context.Context, daemon *client.Client) ([]syncTarget, error) {
	if c.Peer != "" && c.NS != "" {
		return []syncTarget{{c.NS, c.Peer}}, nil
	}
	wanted := c.Peer[strings.LastIndex(c.Peer, "/")+1:] // the id within an address
	if c.Peer != "" {
		if _, err := api.ParseID(wanted); err != nil {
			return nil, problem.Usage("sync with %s: %w; syncd peer ls lists the known ones", c.Peer, err)
		}
	}
	names, err := namesOf(ctx, daemon, c.NS)
	if err != nil {
		return nil, attempt(err, "sync")
	}
	var targets []syncTarget
	for _, name := range names {
		status, err := client.Ask(ctx, daemon, api.GetNamespace, api.StatusParams{NSParams: api.OfNS(name)})
		if err != nil {
			return nil, attempt(err, "sync %q", name)
		}
		for _, m := range status.MemberList {
			switch {
			case m.Self, c.Peer != "" && m.ID != wanted:
			case c.Peer != "":
				targets = append(targets, syncTarget{name, c.Peer})
			default:
				targets = append(targets, syncTarget{name, m.ID})
			}
		}
	}
	if c.Peer != "" && len(targets) == 0 {
		return nil, fmt.Errorf("sync with %s: %w: no namespace of this node has it as a member; syncd member ls NS lists those of one", c.Peer, peer.ErrDenied)
	}
	return targets, nil
}

// syncLine tells a sync in one line.
func syncLine(t syncTarget, r api.Report, dir string) string {
	state := "not verified"
	switch {
	case r.MembersOnly:
		state = "no shard in common; the lists of members were synced"
	case r.Verified:
		state = "in sync"
	case r.Rejected == 0 && dir != wire.Both.String():
		state = dir + "ed, and something is left for the other direction"
	}
	return fmt.Sprintf("%s with %s: %s; %d missing here, %d missing there, %d mismatched; %s sent, %s received, %s, %s",
		t.ns, short(r.Peer), state, r.MissingHere, r.MissingThere, r.Mismatched,
		size(r.WireBytesSent), size(r.WireBytesReceived), countOf(r.Rounds, "round trip"), millis(r.DurationMS))
}

// countOf writes how many of something there are.
func countOf[N int | int64](n N, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// size writes a number of bytes.
func size(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d B", n)
	case n < 10<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// millis writes milliseconds.
func millis(ms float64) string {
	switch d := time.Duration(ms * float64(time.Millisecond)); {
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	default:
		return fmt.Sprintf("%.1f ms", ms)
	}
}

// headwayEvery is the pause between two questions to the daemon how far a sync is.
const headwayEvery = 500 * time.Millisecond

// headway draws how far a sync of the daemon is, until stop is called: a spinner, and
// for a sync that goes in parts a bar that counts the records that have travelled, of
// those that were estimated.
func headway(ctx context.Context, bars *progress.Bars, daemon *client.Client, what string, t syncTarget) (stop func()) {
	name := what + " " + t.ns + " with " + short(t.peer)
	spinner := bars.Spin(name)
	if bars == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var bar *progress.Bar
		defer func() { bar.Done() }()
		for tick := time.NewTicker(headwayEvery); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
			syncs, err := client.Ask(ctx, daemon, api.ListSyncs, api.None{})
			if err != nil {
				continue // the sync itself says what is wrong
			}
			for _, r := range syncs.Running {
				if r.Namespace != t.ns || !strings.HasSuffix(t.peer, r.Peer) || r.Parts == 0 {
					continue
				}
				if bar == nil {
					spinner.Done()
					bar = bars.Count(name, r.Estimate)
				}
				bar.Set(min(headwayOf(&r, what == "diff"), r.Estimate-1)) // a bar that is full is over
			}
		}
	}()
	return func() {
		cancel()
		<-ended
		spinner.Done()
	}
}

// headwayOf is how many differences are settled; a dry run settles those that it has
// found.
func headwayOf(r *api.Report, dry bool) int64 {
	if dry {
		return int64(r.Differences())
	}
	return int64(r.Applied + r.Sent)
}
