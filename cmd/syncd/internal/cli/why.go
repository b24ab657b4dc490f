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
	whys, err := client.Ask(ctx, daemon, api.Explain, api.WhyParams{RecordParams: api.Record(c.NS, key), Peer: c.Peer})
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
			exit = max(exit, problem.ExitTryAgain)
		default:
			exit = max(exit, problem.ExitDiffers)
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
func (a *app) printBody(b *status.Body) {
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
	o := api.ReadParams{Read: c.Read}
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
		k := api.KeyOf(key)
		in.Key, in.Key64 = k.Key, k.Key64
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
