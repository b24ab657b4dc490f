package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
)

type gcCmd struct {
	NS     string `arg:"" optional:"" name:"ns" help:"The namespace's name; all, if it is left out."`
	DryRun bool   `help:"Say what waits and what holds it back, and take out nothing."`
}

func (gcCmd) Help() string {
	return `A deleted record leaves a tombstone, so that it stays deleted everywhere. The tombstone goes once all members are past it; likewise a record that has expired. Daemons see to that by themselves, within minutes. gc does now what they would do, and says which member holds the rest back, and since when: a member that is silent for good is let go with syncd member lapse.

Examples:
    syncd gc
    syncd gc notes --dry-run`
}

// Run collects, or says what a collection waits for.
func (c gcCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	names, err := namesOf(ctx, daemon, c.NS)
	if err != nil {
		return attempt(err, "list the namespaces")
	}
	collect := daemon.Collect
	if c.DryRun {
		collect = daemon.Collection
	}
	found := map[string]api.Collection{}
	for _, name := range names {
		got, err := collect(ctx, name)
		if err != nil {
			return attempt(err, "collect in %q", name)
		}
		found[name] = got
	}
	out := any(found)
	if c.NS != "" {
		out = found[c.NS]
	}
	return a.answer(nil, out, func() {
		for _, name := range names {
			a.printCollection(name, found[name])
		}
	})
}

func (a *app) printCollection(name string, c api.Collection) {
	if c.Swept != nil {
		a.remark("%s: %d deleted or expired records are gone", name, c.Swept.Collected)
		if n := c.Swept.Adopted + c.Swept.SetAside; n > 0 {
			a.remark("%s: of writers that lost their right, %d records were written again here and %d set aside", name, c.Swept.Adopted, c.Swept.SetAside)
		}
	}
	switch {
	case !c.Counted:
		a.remark("%s: what waits is not counted yet", name)
	case c.Waiting == 0:
		a.remark("%s: nothing waits", name)
	default:
		a.remark("%s: at most %d deleted or expired records wait, the oldest since %s", name, c.Waiting, c.Oldest.Format(time.RFC3339))
	}
	if c.Recovering {
		a.remark("%s: this node has to be found equal with another member first; sync with one", name)
	}
	if len(c.Holding) == 0 {
		return
	}
	t := a.table("waits for", "known up to", "heard", "because")
	for _, h := range c.Holding {
		t.row(h.Member.String(), moment(h.Since), moment(h.Synced), h.Reason)
	}
	t.print()
}

// moment is a time, or a dash for the zero time.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.RFC3339)
}

// silent says which members hold the collection back and were not heard for long.
func silent(ns *api.Namespace) (troubles []string) {
	for _, h := range ns.Silent {
		troubles = append(troubles, fmt.Sprintf("member %s was last heard at %s, and deleted records wait for it; if it is not coming back: syncd member lapse %s %s", h.Member, moment(h.Synced), ns.Name, h.Member))
	}
	return troubles
}
