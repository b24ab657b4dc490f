package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

// keptArgs are the arguments of conflicts and rejected.
type keptArgs struct {
	nsArg
	Verb  string `arg:"" optional:"" default:"ls" enum:"ls,show,restore,forget" help:"ls (the default) lists them, show KEY prints the value, restore KEY writes it again, forget KEY drops the entry for good."`
	Key   string `arg:"" optional:"" help:"The key: any bytes. Begin with -- if it starts with a dash."`
	Key64 bool   `name:"key64" help:"KEY is base64, for keys that hold zero bytes or that the shell cannot write."`
	Entry uint64 `help:"This entry of the key, by the number that ls shows, instead of the newest." placeholder:"N"`
	All   bool   `help:"With forget: all entries."`
}

type conflictsCmd struct{ keptArgs }

func (conflictsCmd) Help() string {
	return `Where two members write one key and neither has seen the other's write, the later one wins everywhere. Each node that held the other one keeps it here: 10,000 of them and 64 MiB, the oldest go first. Nothing of it is sent to other members.

In a namespace of shards the list has what each member says that it keeps, and names the member. Where one does not answer, the others' entries are printed, and the exit code is 5. show, restore and forget are for the node that keeps the entry.

restore writes the value again, as a write of now, which wins; the entry is then gone from the list. forget drops the entry for good, or all of them with --all. All three take the newest entry of the key.

Examples:
    syncd conflicts notes
    syncd conflicts notes show greeting
    syncd conflicts notes restore greeting
    syncd conflicts notes forget greeting`
}

// Run lists, shows or restores.
func (c conflictsCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	return c.run(ctx, a, daemon, api.Conflicts)
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
	return c.run(ctx, a, daemon, api.Rejected)
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
		_, err := client.Ask(ctx, daemon, api.ForgetKept(list), api.KeptParams{NSParams: api.OfNS(c.NS), Seq: seq})
		return a.forgot(attempt(err, "forget %s of the %s of %q", show(key), list, c.NS), 1)
	}
	restored, err := daemon.RestoreKept(ctx, list, api.KeptParams{NSParams: api.OfNS(c.NS), Seq: seq})
	if err != nil {
		return attempt(err, "restore %s of the %s of %q", show(key), list, c.NS)
	}
	if restored.Version == "" {
		a.remark("the entry is a deletion, and there is no record: nothing was written")
		return nil
	}
	a.printVersion(restored.Version)
	return nil
}

// entry is the number of the entry that is meant.
func (c *keptArgs) entry(ctx context.Context, daemon *client.Client, list string, key []byte) (seq uint64, err error) {
	all, missing, err := c.all(ctx, daemon, list, key)
	if err != nil {
		return 0, err
	}
	for _, k := range all.Entries {
		if (c.Entry == 0 || k.Seq == c.Entry) && !slices.Contains(all.Others, k.KeptBy) {
			seq = k.Seq
		}
	}
	switch {
	case seq != 0:
		return seq, nil
	case len(all.Refused) > 0:
		return 0, fmt.Errorf("%w: the record was refused, and is not kept; get it from the peer that offered it", errNoEntry)
	case len(all.Entries) > 0:
		return 0, fmt.Errorf("%w at this node: %s keeps it; give the command there", errNoEntry, all.Entries[len(all.Entries)-1].KeptBy)
	case missing != nil:
		return 0, missing
	}
	return 0, fmt.Errorf("%w; syncd %s %s lists what there is", errNoEntry, list, c.NS)
}

func (c *keptArgs) show(ctx context.Context, a *app, daemon *client.Client, list string, seq uint64) error {
	k, err := client.Ask(ctx, daemon, api.ShowKept(list), api.KeptParams{NSParams: api.OfNS(c.NS), Seq: seq})
	return a.answer(attempt(err, "show entry %d of the %s of %q", seq, list, c.NS), k, func() {
		if k.Deleted {
			a.remark("the entry is a deletion, of %s", k.Time.Format(time.RFC3339))
		}
		a.printf("%s", k.Content.Bytes())
	})
}

// forgetAll forgets the entries that there are now, at this node.
func (c *keptArgs) forgetAll(ctx context.Context, a *app, daemon *client.Client, list string) error {
	all, err := c.of(ctx, daemon, list, "", nil)
	if err != nil {
		return attempt(err, "list the %s of %q", list, c.NS)
	}
	out, n := api.Forgotten{}, len(all.Entries)
	if n > 0 {
		out, err = client.Ask(ctx, daemon, api.ForgetAllKept(list), api.ForgetParams{NSParams: api.OfNS(c.NS), Through: all.Entries[n-1].Seq})
	}
	err = a.forgot(attempt(err, "forget the %s of %q", list, c.NS), out.Forgotten)
	if err == nil && len(all.Others) > 0 {
		a.remark("other members keep entries, too: forget those there: %s", strings.Join(all.Others, ", "))
	}
	return err
}

// forgot ends a command that has forgotten n entries.
func (a *app) forgot(err error, n int) error {
	return a.done(err, api.Forgotten{Forgotten: n}, "forgotten: %s", countOf(n, "record"))
}

// of is the whole list of a member, of all keys or of one; "": of this node.
func (c *keptArgs) of(ctx context.Context, daemon *client.Client, list, member string, key []byte) (api.KeptList, error) {
	all := api.KeptList{Entries: []api.Kept{}}
	for cursor := uint64(0); ; {
		page, err := client.Ask(ctx, daemon, api.ListKept(list), api.KeptListParams{NSParams: api.OfNS(c.NS), Member: member, Key: string(key), Cursor: cursor, Limit: pageSize})
		if err != nil {
			return all, err
		}
		all.Entries, all.Refused, all.Others = append(all.Entries, page.Entries...), append(all.Refused, page.Refused...), page.Others
		if cursor = page.Cursor; cursor == 0 {
			return all, nil
		}
	}
}

// all is the list of this node, and those of the members that say that they keep entries. missing
// says which have not answered.
func (c *keptArgs) all(ctx context.Context, daemon *client.Client, list string, key []byte) (all api.KeptList, missing, err error) {
	if all, err = c.of(ctx, daemon, list, "", key); err != nil {
		return all, nil, err
	}
	theirs, failed := make([]api.KeptList, len(all.Others)), make([]error, len(all.Others))
	var asking sync.WaitGroup
	for i, member := range all.Others {
		asking.Go(func() { theirs[i], failed[i] = c.of(ctx, daemon, list, member, key) })
	}
	asking.Wait()
	var words []string
	for i, member := range all.Others {
		if all.Entries = append(all.Entries, theirs[i].Entries...); failed[i] != nil {
			words = append(words, fmt.Sprintf("%s: %v", member, failed[i]))
		}
	}
	if len(words) > 0 {
		missing = fmt.Errorf("%d of %s that keep entries did not answer: %s: %w", len(words), countOf(len(all.Others), "other member"), strings.Join(words, "; "), peer.ErrUnreachable)
	}
	return all, missing, nil
}

func (c *keptArgs) list(ctx context.Context, a *app, daemon *client.Client, list string) error {
	all, missing, err := c.all(ctx, daemon, list, nil)
	err = a.answer(err, all, func() { a.printKept(&all) })
	return attempt(cmp.Or(err, missing), "list the %s of %q", list, c.NS)
}

func (a *app) printKept(all *api.KeptList) {
	if len(all.Entries) > 0 {
		columns := []string{"entry", "key", "size", "written", "by", "left the set", "for version"}
		shards := all.Entries[0].KeptBy != ""
		if shards {
			columns = append(columns, "kept by")
		}
		t := a.table(columns...)
		for _, k := range all.Entries {
			size := fmt.Sprint(k.Size)
			if k.Deleted {
				size = "deleted"
			}
			writer := k.Writer
			if k.Member != "" {
				writer = short(k.Member)
			}
			row := []string{fmt.Sprint(k.Seq), show(k.Key.Bytes()), size, k.Time.Format(time.RFC3339), writer, k.At.Format(time.RFC3339), k.By}
			if shards {
				row = append(row, short(k.KeptBy))
			}
			t.row(row...)
		}
		t.print()
	}
	if len(all.Entries) > 0 && len(all.Refused) > 0 {
		a.printf("\n")
	}
	a.printRefused(all.Refused)
}

// printRefused shows what was refused, if there is any.
func (a *app) printRefused(refused []api.Rejection) {
	if len(refused) == 0 {
		return
	}
	t := a.table("refused", "of peer", "at", "because")
	for _, r := range refused {
		t.row(show(r.Bytes()), short(r.Peer), r.Time.Format(time.RFC3339), r.Reason)
	}
	t.print()
}
