package cli

import (
	"context"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
)

type locateCmd struct {
	keyArg
	All bool `help:"Ask all members that may hold the key, not only as many as a read does."`
}

func (locateCmd) Help() string {
	return `Says to which shard a key belongs, which members are to hold it, what the key was found to hold and how sure that is, and which members were asked, in their order, and what each has said.

Exit code 5 when no member that can be sure has answered.

Examples:
    syncd locate packages curl
    syncd locate packages curl --all -o json | jq -r '.asked[].peer'`
}

// Run asks and prints.
func (c locateCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	key, err := c.bytes()
	if err != nil {
		return err
	}
	l, err := daemon.Locate(ctx, c.NS, key, c.All)
	if err != nil {
		return attempt(err, "locate %s in %q", show(key), c.NS)
	}
	if a.json() {
		err = a.printJSON(l)
	} else {
		err = a.printLocated(&l)
	}
	return err
}

func (a *app) printLocated(l *api.Located) error {
	moves := ""
	if l.Moving {
		moves = "; it moves"
	}
	if err := a.printf("shard %d: %s%s\n", l.Shard, headLine(l.Holds), moves); err != nil {
		return err
	}
	if len(l.Hosts) == 0 {
		a.remark("no layout is known here yet: sync with a member")
	}
	for _, id := range l.Hosts {
		if err := a.printf("host %s\n", id); err != nil {
			return err
		}
	}
	for _, at := range l.Asked {
		said := "holds nothing"
		switch {
		case at.Error != "":
			said = at.Error
		case at.Version != "":
			said = "version " + at.Version
		}
		if at.Error == "" && !at.Whole {
			said += ", and has not taken over the shard yet"
		}
		if at.Took != "" {
			said += ", after " + at.Took
		}
		if err := a.printf("asked %s: %s\n", at.Peer, oneLine(show([]byte(said)))); err != nil {
			return err
		}
	}
	return nil
}
