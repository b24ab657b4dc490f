package cli

import (
	"context"
	"strings"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/peer/status"
)

type whyCmd struct {
	keyArg
	Peer string `help:"Ask this member alone: its id, or an address that ends in /p2p/ and one." placeholder:"ID"`
}

func (whyCmd) Help() string {
	return `Asks each other member now what it holds under the key, and says how that stands to what this node holds, and why: same, held by neither, missing here, missing there, newer here, newer there, two contents (of one version), or unknown, where a member does not answer. Below stand the causes: what a side declines and by which rule, what has been collected, has expired or was written beside another version, and what a sync has just not carried yet. In a namespace of shards it is for a host of the key's shard, and asks the others: locate names them. By placement writer it also says what each host of a large value has of it.

Exit code 9 when the key is not the same at all that answered, 5 when it is and one did not answer.

Examples:
    syncd why notes greeting
    syncd why notes greeting --peer 12D3KooW… -o json | jq -r '.peers[].causes[].kind'`
}

// Run asks and prints.
func (c whyCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	key, err := c.bytes()
	if err != nil {
		return err
	}
	whys, err := daemon.Why(ctx, c.NS, key, c.Peer)
	err = a.answer(attempt(err, "why %s in %q", show(key), c.NS), whys, func() { a.printWhys(&whys) })
	if exit := whyExit(&whys); err == nil && exit != 0 {
		return &saidError{exit}
	}
	return err
}

// whyExit is the exit code of what the peers have said.
func whyExit(whys *api.Whys) (exit int) {
	for _, w := range whys.Peers {
		switch standingOf(&w) {
		case status.StandingSame, status.StandingNeither:
		case status.StandingUnknown:
			exit = max(exit, exitUnknown)
		default:
			exit = max(exit, exitDiffers)
		}
	}
	return exit
}

func (a *app) printWhys(whys *api.Whys) {
	a.printf("here: %s\n", headLine(whys.Here))
	if b := whys.Body; b != nil {
		a.printBody(b)
	}
	if len(whys.Peers) == 0 {
		a.remark("no other member to ask")
	}
	for _, w := range whys.Peers {
		there := ""
		switch {
		case standingOf(&w) == status.StandingUnknown, standingOf(&w) == status.StandingNeither:
		case w.There == nil || whys.Here == nil || w.There.Version != whys.Here.Version:
			there = "; there: " + headLine(w.There)
		}
		a.printf("%s: %s%s\n", w.Peer, standingOf(&w), there)
		for _, c := range w.Causes {
			a.printf("  %s: %s\n", strings.ReplaceAll(c.Kind, "_", " "), oneLine(show([]byte(c.Text))))
		}
		if s := standingOf(&w); s == status.StandingSame || s == status.StandingNeither {
			continue
		}
		last := "  no sync has proved all records equal to its yet\n"
		if !w.Verified.IsZero() {
			last = "  the last sync that proved all records equal to its: " + w.Verified.Format(time.RFC3339) + "\n"
		}
		a.printf("%s", last)
	}
}

// printBody says what the hosts of a value have of it.
func (a *app) printBody(b *api.Body) {
	a.printf("value: %s in shard %d, sent at %s\n", size(int64(b.Size)), b.Shard, b.Sent.Format(time.RFC3339))
	for _, at := range b.Hosts {
		said := "has it not"
		switch {
		case at.Error != "":
			said = "has not answered: " + oneLine(show([]byte(at.Error)))
		case at.Has && at.Told:
			said = "has it, and knows the record"
		case at.Has:
			said = "has it"
		case at.Told:
			said = "has it not, and knows the record"
		}
		a.printf("  %s: %s\n", at.Peer, said)
	}
}

// standingOf is the standing in words.
func standingOf(w *api.Why) status.Standing {
	return status.Standing(strings.ReplaceAll(w.Standing, "_", " "))
}

func headLine(h *api.Head) string {
	if h == nil {
		return "nothing"
	}
	line := "version " + h.Version + " of " + h.Time.Format(time.RFC3339Nano)
	if h.Deleted {
		line += ", a deletion"
	}
	if !h.Expires.IsZero() {
		line += ", expires " + h.Expires.Format(time.RFC3339)
	}
	return line
}
