package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
)

type diffCmd struct {
	Peer   string `arg:"" help:"Peer id, or address that ends in /p2p/ and one."`
	NS     string `name:"ns" required:"" help:"The namespace's name." placeholder:"NS"`
	Prefix string `help:"Only keys that begin with it." placeholder:"P" empty:""`
	Keys   bool   `help:"List the keys that differ, by kind, with both versions."`
	Limit  int    `help:"With --keys: at most so many; 0 means all." placeholder:"N"`
}

func (diffCmd) Help() string {
	return `Changes nothing on either side. Exit code 9 when the two differ, 0 when they hold the same.

--keys prints a line for each key, in no order, as they are found: missing here, missing there, newer here, newer there, or conflict (the writer of the version that stands did not know of the other one), and the version of each side. With -o json it prints a JSON object a line; the last one is of the kind end, and says whether --limit kept more out.

Examples:
    syncd diff 12D3KooW… --ns notes
    syncd diff 12D3KooW… --ns notes --keys --limit 20
    syncd diff 12D3KooW… --ns notes --keys -o json | jq -r 'select(.kind == "missing_here") | .key'`
}

// Run prints what differs.
func (c diffCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	switch {
	case c.Limit < 0:
		return problem.Usage("diff %q: --limit %d: want a number of keys, or 0", c.NS, c.Limit)
	case c.Limit > 0 && !c.Keys:
		return problem.Usage("diff %q: --limit bounds what --keys lists", c.NS)
	case c.Keys:
		return c.list(ctx, a, daemon)
	}
	stop := headway(ctx, a.bars(), daemon, "diff", syncTarget{c.NS, c.Peer})
	r, err := client.Ask(ctx, daemon, api.GetDiff, api.DiffParams{NSParams: api.OfNS(c.NS), Peer: c.Peer, PrefixParams: api.Under(c.Prefix)})
	stop()
	err = a.answer(attempt(err, "diff %q with %s", c.NS, c.Peer), r, func() { a.printDiff(r) })
	if err == nil && r.Differences() > 0 {
		return &saidError{problem.ExitDiffers}
	}
	return err
}

func (a *app) printDiff(r api.Report) {
	t := a.table("", "")
	t.row("missing here", fmt.Sprint(r.MissingHere))
	t.row("missing there", fmt.Sprint(r.MissingThere))
	t.row("mismatched", fmt.Sprint(r.Mismatched))
	t.row("a sync would move", "about "+size(r.ForecastBytes))
	t.row("found in", fmt.Sprintf("%s, %s, %s sent, %s received", countOf(r.Rounds, "round trip"), millis(r.DurationMS), size(r.WireBytesSent), size(r.WireBytesReceived)))
	t.print()
}

// list prints the keys that differ.
func (c diffCmd) list(ctx context.Context, a *app, daemon *client.Client) error {
	listed := 0
	last, err := daemon.DiffKeys(ctx, api.DiffKeysParams{NSParams: api.OfNS(c.NS), Peer: c.Peer, PrefixParams: api.Under(c.Prefix), Limit: c.Limit}, func(d *api.KeyDifference) error {
		listed++
		a.printKeyDifference(d)
		return a.stdout.err
	})
	if err != nil {
		return attempt(err, "list the keys of %q that differ from %s", c.NS, c.Peer)
	}
	if a.json() {
		a.printLine(last)
	}
	switch {
	case last.More && !a.json():
		a.remark("more keys differ than --limit lists")
	case listed == 0 && !last.More:
		return nil
	}
	return &saidError{problem.ExitDiffers}
}

func (a *app) printKeyDifference(d *api.KeyDifference) {
	if a.json() {
		a.printLine(d)
		return
	}
	var sides []string
	for side, head := range map[string]*api.Head{"here": d.Here, "there": d.There} {
		if head == nil {
			continue
		}
		text := side + " " + head.Version
		if head.Deleted {
			text += " (deleted)"
		}
		if d.Kind == "conflict" && d.Wins == side {
			text += " (stands)"
		}
		sides = append(sides, text)
	}
	slices.Sort(sides)
	a.printf("%-13s  %s  %s\n", strings.ReplaceAll(d.Kind, "_", " "), show(d.Bytes()), strings.Join(sides, ", "))
}

// printLine prints a JSON object on a line.
func (a *app) printLine(v any) { a.stdout.failed(api.WriteJSON(a.stdout, v, "")) }
