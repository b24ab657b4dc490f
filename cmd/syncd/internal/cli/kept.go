package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

// keptArgs are the arguments of conflicts and rejected.
type keptArgs struct {
	NS    string `arg:"" name:"ns" help:"The namespace's name."`
	Verb  string `arg:"" optional:"" default:"ls" enum:"ls,show,restore,forget" help:"ls (the default) lists them, show KEY prints the value, restore KEY writes it again, forget KEY drops the entry for good."`
	Key   string `arg:"" optional:"" help:"The key: any bytes. Begin with -- if it starts with a dash."`
	Key64 bool   `name:"key64" help:"KEY is base64, for keys that hold zero bytes or that the shell cannot write."`
	Entry uint64 `help:"This entry of the key, by the number that ls shows, instead of the newest." placeholder:"N"`
	All   bool   `help:"With forget: all entries."`
}

type conflictsCmd struct{ keptArgs }

func (conflictsCmd) Help() string {
	return `Where two members write one key and neither has seen the other's write, the later one wins everywhere. Each node that held the other one keeps it here: 10,000 of them and 64 MiB, the oldest go first. Nothing of it is sent to other members.

restore writes the value again, as a write of now, which wins; the entry is then gone from the list. forget drops the entry for good, or all of them with --all. All three take the newest entry of the key.

Examples:
    syncd conflicts notes
    syncd conflicts notes show greeting
    syncd conflicts notes restore greeting
    syncd conflicts notes forget greeting`
}

// Run lists, shows or restores.
func (c conflictsCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	return c.run(ctx, a, daemon, client.Conflicts)
}

type rejectedCmd struct{ keptArgs }

func (rejectedCmd) Help() string {
	return `What this node does not hold although a member wrote it. A refused record was offered by a peer and not taken; the list says why, and begins anew when the daemon is started. A record that was set aside had been held: all members are past its time without it, because they deleted it while this node was away, or never had it; or its writer had lost the right to write, this node itself perhaps. It stays here until it is restored or forgotten.

restore writes the value again, as a write of now, which the others then take; the entry is then gone from the list. forget drops the entry for good, or all of them with --all. show, restore and forget work for what was set aside: what was refused is not kept. They take the newest entry of the key.

Examples:
    syncd rejected notes
    syncd rejected notes show greeting
    syncd rejected notes restore greeting
    syncd rejected notes forget --all`
}

// Run lists, shows or restores.
func (c rejectedCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	return c.run(ctx, a, daemon, client.Rejected)
}

// errNoEntry: the list has no such entry.
var errNoEntry = fmt.Errorf("there is no such entry: %w", peer.ErrNotFound)

func (c *keptArgs) run(ctx context.Context, a *app, daemon *client.Client, list string) error {
	if c.All {
		if c.Verb != "forget" || c.Key != "" || c.Entry != 0 {
			return problem.Usage("--all goes with forget, and without a key; see: syncd %s --help", list)
		}
		return c.forgetAll(ctx, a, daemon, list)
	}
	if c.Verb == "ls" {
		if c.Key != "" || c.Entry != 0 {
			return problem.Usage("ls takes no key; see: syncd %s --help", list)
		}
		return c.list(ctx, a, daemon, list)
	}
	key, err := keyArg{Key: c.Key, Key64: c.Key64}.bytes()
	if err != nil {
		return err
	}
	seq, err := c.entry(ctx, daemon, list, key)
	if err != nil {
		return attempt(err, "%s %s of the %s of %q", c.Verb, show(key), list, c.NS)
	}
	switch c.Verb {
	case "show":
		return c.show(ctx, a, daemon, list, seq)
	case "forget":
		if err := daemon.ForgetKept(ctx, c.NS, list, seq); err != nil {
			return attempt(err, "forget %s of the %s of %q", show(key), list, c.NS)
		}
		return a.printForgotten(1)
	}
	restored, err := daemon.RestoreKept(ctx, c.NS, list, seq)
	if err != nil {
		return attempt(err, "restore %s of the %s of %q", show(key), list, c.NS)
	}
	if restored.Version == "" {
		a.remark("the entry is a deletion, and there is no record: nothing was written")
		return nil
	}
	return a.printVersion(restored.Version)
}

// entry is the number of the entry that is meant.
func (c *keptArgs) entry(ctx context.Context, daemon *client.Client, list string, key []byte) (seq uint64, err error) {
	refused := 0
	for cursor := uint64(0); ; {
		page, err := daemon.Kept(ctx, c.NS, list, key, cursor, pageSize)
		if err != nil {
			return 0, err
		}
		refused += len(page.Refused)
		for _, k := range page.Entries {
			if c.Entry == 0 || k.Seq == c.Entry {
				seq = k.Seq
			}
		}
		if cursor = page.Cursor; cursor == 0 {
			break
		}
	}
	switch {
	case seq != 0:
		return seq, nil
	case refused > 0:
		return 0, fmt.Errorf("%w: the record was refused, and is not kept; get it from the peer that offered it", errNoEntry)
	}
	return 0, fmt.Errorf("%w; syncd %s %s lists what there is", errNoEntry, list, c.NS)
}

func (c *keptArgs) show(ctx context.Context, a *app, daemon *client.Client, list string, seq uint64) error {
	k, err := daemon.KeptValue(ctx, c.NS, list, seq)
	if err != nil {
		return attempt(err, "show entry %d of the %s of %q", seq, list, c.NS)
	}
	if a.json() {
		return a.printJSON(k)
	}
	if k.Deleted {
		a.remark("the entry is a deletion, of %s", k.Time.Format(time.RFC3339))
		return nil
	}
	_, err = a.stdout.Write(k.Bytes())
	return err
}

// forgetAll forgets the entries that there are now.
func (c *keptArgs) forgetAll(ctx context.Context, a *app, daemon *client.Client, list string) error {
	all, err := c.all(ctx, daemon, list)
	if err != nil {
		return err
	}
	n := len(all.Entries)
	if n == 0 {
		return a.printForgotten(0)
	}
	out, err := daemon.ForgetAllKept(ctx, c.NS, list, all.Entries[n-1].Seq)
	if err != nil {
		return attempt(err, "forget the %s of %q", list, c.NS)
	}
	return a.printForgotten(out.Forgotten)
}

func (a *app) printForgotten(n int) error {
	if a.json() {
		return a.printJSON(api.Forgotten{Forgotten: n})
	}
	a.remark("forgotten: %s", countOf(n, "record"))
	return nil
}

// all is the whole list.
func (c *keptArgs) all(ctx context.Context, daemon *client.Client, list string) (api.KeptList, error) {
	all := api.KeptList{Entries: []api.Kept{}}
	for cursor := uint64(0); ; {
		page, err := daemon.Kept(ctx, c.NS, list, nil, cursor, pageSize)
		if err != nil {
			return all, attempt(err, "list the %s of %q", list, c.NS)
		}
		all.Entries, all.Refused = append(all.Entries, page.Entries...), append(all.Refused, page.Refused...)
		if cursor = page.Cursor; cursor == 0 {
			return all, nil
		}
	}
}

func (c *keptArgs) list(ctx context.Context, a *app, daemon *client.Client, list string) error {
	all, err := c.all(ctx, daemon, list)
	if err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(all)
	}
	if len(all.Entries) > 0 {
		t := a.table("entry", "key", "size", "written", "by", "left the set", "for version")
		for _, k := range all.Entries {
			size := fmt.Sprint(k.Size)
			if k.Deleted {
				size = "deleted"
			}
			writer := k.Writer
			if k.Member != "" {
				writer = short(k.Member)
			}
			t.row(fmt.Sprint(k.Seq), show(k.Key.Bytes()), size, k.Time.Format(time.RFC3339), writer, k.At.Format(time.RFC3339), k.By)
		}
		if err := t.print(); err != nil {
			return err
		}
	}
	if len(all.Entries) > 0 && len(all.Refused) > 0 {
		if err := a.printf("\n"); err != nil {
			return err
		}
	}
	return a.printRefused(all.Refused)
}

// printRefused shows what was refused, if there is any.
func (a *app) printRefused(refused []api.Rejection) error {
	if len(refused) == 0 {
		return nil
	}
	t := a.table("refused", "of peer", "at", "because")
	for _, r := range refused {
		t.row(show(r.Bytes()), short(r.Peer), r.Time.Format(time.RFC3339), r.Reason)
	}
	return t.print()
}
