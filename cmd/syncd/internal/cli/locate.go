package cli

import (
	"context"
	"fmt"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
)

type locateCmd struct {
	keyArg
	Read string `help:"As in get." placeholder:"LEVEL" predictor:"level" xor:"read"`
	All  bool   `help:"The same as --read all." xor:"read"`
}

func (locateCmd) Help() string {
	return `Says to which shard a key belongs, which members are its hosts, what the key was found to hold, which hosts were asked, and what each has said. Where the namespace has a locator, also what that says, and how long ago the host was asked from which it has that. Reads at level one rest on it.

Exit code 5 when fewer hosts have answered than the level takes: one, quorum (the default) or all.

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
	o := client.GetOptions{Read: c.Read}
	if c.All {
		o.Read = "all"
	}
	ctx, cancel := a.leaveTime(ctx, &o.Timeout)
	defer cancel()
	l, err := daemon.Locate(ctx, c.NS, key, o)
	err = attempt(err, "locate %s in %q", show(key), c.NS)
	if l.Asked != nil {
		a.print(l, func() { a.printLocated(&l) })
	}
	return err
}

func (a *app) printLocated(l *api.Located) {
	moves := ""
	if l.Moving {
		moves = "; it moves"
	}
	a.printf("shard %d: %s%s\n", l.Shard, headLine(l.Holds), moves)
	if len(l.Hosts) == 0 {
		a.remark("no layout is known here yet: sync with a member")
	}
	for _, id := range l.Hosts {
		a.printf("host %s\n", id)
	}
	if s := l.Locator; s != nil {
		says := s.Where
		if s.Where == "in a shard" {
			says = fmt.Sprintf("in shard %d", s.Shard)
		}
		if s.Host != "" {
			says += fmt.Sprintf(", as %s said %s ago", s.Host, s.Age)
		}
		a.printf("locator: %s\n", says)
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
		a.printf("asked %s: %s\n", at.Peer, oneLine(show([]byte(said))))
	}
}
