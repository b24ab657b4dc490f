package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer/status"
)

type memberCmd struct {
	Ls    memberLsCmd    `cmd:"" help:"List the members of a namespace."`
	Set   memberSetCmd   `cmd:"" help:"Give a member another role."`
	Rm    memberRmCmd    `cmd:"" help:"Remove a member."`
	Lapse memberLapseCmd `cmd:"" help:"Wait for a silent member no longer."`
}

type memberLsCmd struct {
	nsArg
	All bool `help:"Those that were members, and changes that do not count, too."`
}

func (memberLsCmd) Help() string {
	return `"by" is the admin that gave the role; "synced" is when this node last synced with the member, since the daemon was started. A change of the members does not count if its author lost the right to it by a change that was made at the same time elsewhere: make it again if it was meant.

Examples:
    syncd member ls notes
    syncd member ls notes --all -o json`
}

// Run lists the members.
func (c memberLsCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	got, err := client.Ask(ctx, daemon, api.ListMembers, api.MembersParams{NSParams: api.OfNS(c.NS), All: c.All})
	return a.answer(attempt(err, "list the members of %q", c.NS), got, func() {
		a.printMembers(got.Members)
		if len(got.Former) > 0 {
			t := a.table("former member", "removed by", "at")
			for _, f := range got.Former {
				t.row(f.ID.String(), f.By.String(), moment(f.At))
			}
			t.after()
		}
		if len(got.Voided) > 0 {
			t := a.table("does not count", "of", "role", "by", "at")
			for _, v := range got.Voided {
				t.row(v.Kind, v.Subject.String(), orDash(strings.Fields(v.Role)), v.By.String(), moment(v.At))
			}
			t.after()
		}
	})
}

func (a *app) printMembers(members []api.Member) {
	t := a.table("member", "role", "since", "by", "expires", "synced", "addresses", "")
	for _, m := range members {
		t.row(m.ID, m.Role, moment(m.Since), short(m.By), moment(m.Expires), moment(m.Synced), orDash(m.Addrs), strings.Join(marks(&m, time.Now()), ", "))
	}
	t.print()
}

// marks are what is special about a member.
func marks(m *api.Member, now time.Time) (marks []string) {
	if m.Self {
		marks = append(marks, "this node")
	}
	if m.Lapsed {
		marks = append(marks, "lapsed")
	}
	if !m.Expires.IsZero() && !m.Expires.After(now) {
		marks = append(marks, "expired") // an admin's node has not written it down yet
	}
	return marks
}

type memberSetCmd struct {
	nsArg
	ID      string        `arg:"" name:"id" help:"The node's id, as syncd member ls prints it."`
	Role    string        `required:"" help:"What it may do: read, write or admin." enum:"read,write,admin"`
	Expires time.Duration `help:"For how long it shall be a member; 0 means without end." default:"0s"`
	Force   bool          `help:"Also where this node steps down with writes that it may hold alone, or as the last admin."`
}

func (memberSetCmd) Help() string {
	return `It takes the role admin. An admin loses that role only by itself, or by an admin above it in the chain of invitations. The other members hear of the change with their next syncs.

A writer that becomes a reader keeps all records but for its own writes that no sync has proved another member to hold. When it hears of the change it sets these aside and lists them (syncd rejected). A node that steps down itself is refused while it has such writes (exit 1): sync first. So is the last admin (exit 6).
Members that have heard of the change refuse what it writes later. One that has not may take it, and then writes it again in its own name, or sets it aside if it only reads.

A node that was removed is a member again, and comes back with its next sync. A node that never was a member lacks the namespace's secret: it joins with a ticket (syncd invite).

Examples:
    syncd member set notes 12D3KooW… --role read
    syncd member set notes 12D3KooW… --role write --expires 720h`
}

// Run gives the role.
func (c memberSetCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	in := api.NewRole{Role: c.Role, Force: c.Force}
	if c.Expires < 0 {
		return problem.Usage("member set: --expires %s: want a duration above 0, such as 720h", c.Expires)
	}
	if c.Expires > 0 {
		in.Expires = c.Expires.String()
	}
	before, err := client.Ask(ctx, daemon, api.ListMembers, api.MembersParams{NSParams: api.OfNS(c.NS), All: true})
	if err != nil {
		return attempt(err, "set a member of %q", c.NS)
	}
	_, err = client.Ask(ctx, daemon, api.SetMember, api.SetMemberParams{NSParams: api.OfNS(c.NS), ID: c.ID, Body: in})
	err = a.done(attempt(err, "set the role of %s in %q", c.ID, c.NS), map[string]string{"id": c.ID, "role": c.Role, "expires": in.Expires},
		"%s has the role %s in %s; the other members hear of it with their next syncs", c.ID, c.Role, c.NS)
	known := slices.ContainsFunc(before.Members, func(m api.Member) bool { return m.ID == c.ID }) ||
		slices.ContainsFunc(before.Former, func(f status.FormerMember) bool { return f.ID.String() == c.ID })
	if err == nil && !known {
		a.remark("it was not a member before: if it has never joined, let it in with: syncd invite %s --role %s", c.NS, c.Role)
	}
	return err
}

type memberRmCmd struct {
	nsArg
	ID string `arg:"" name:"id" help:"The member's id, as syncd member ls prints it."`

	Force bool `help:"Also where this node leaves with writes that it may hold alone, or as the last admin; and where shards have no majority of their hosts left then."`
}

func (memberRmCmd) Help() string {
	return `It takes the role admin; an admin is removed by an admin above it in the chain of invitations, and each member can remove itself.

What follows:
  - The node keeps what it holds, and the secret. No member that has heard of the removal syncs with it; the others hear of it with their next syncs.
  - What a sync has proved another member to hold stays. The rest of its own writes it sets aside and lists (syncd rejected) when it hears
    of the removal, also if it joins again. To restore such a record is a new write.
  - Members that have heard of the removal refuse what it writes later. One that has not may take it, and then writes it again in its own
    name, or sets it aside if it only reads.
  - A node that removes itself is refused while no sync has proved that others hold its writes (exit 1): sync first. So is the last admin (exit 6).
  - Tickets that it has issued, and old tickets for it, are of no use any more. Members that it invited stay.
  - It is told which admin removed it, and when, as soon as it calls a member.
  - In a namespace that is cut into shards the members that stay take its shards over from their other hosts. What it alone holds is lost:
    a member that runs hands its shards over first where it is given the role read (syncd member set NS ID --role read).
    Where some shard would have no majority of its hosts left, nothing changes (exit 1), and the error says which, and what to do.

Example:
    syncd member rm notes 12D3KooW…`
}

// Run removes the member.
func (c memberRmCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	_, err := client.Ask(ctx, daemon, api.RemoveMember, api.RemoveParams{NSParams: api.OfNS(c.NS), ID: c.ID, Force: c.Force})
	return a.done(attempt(lacking(err, "syncd member ls %s lists the members", c.NS), "remove %s from %q", c.ID, c.NS), map[string]string{"removed": c.ID},
		"removed %s from %s; it keeps what it has read; the other members hear of it with their next syncs, or now with: syncd sync --ns %s", c.ID, c.NS, c.NS)
}

type memberLapseCmd struct {
	nsArg
	ID string `arg:"" name:"id" help:"The member's id."`

	Force bool `help:"Also where shards have no majority of their hosts left then."`
}

func (memberLapseCmd) Help() string {
	return `For a member that is not coming back, or not soon. The collection of deleted records waits for every member; from now on it does not wait for this one. It stays a member. When it comes back it catches up first; what it has written and no other member has seen may then be set aside on it, for a person. It takes the role admin.

In a namespace of shards others take its shards over, and it is a host again when it comes back. Where some shard would have no majority of its hosts left, nothing changes (exit 1), and the error says which, and what to do.

Example:
    syncd member lapse notes 12D3KooW…`
}

// Run makes the members wait for one no longer.
func (c memberLapseCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	_, err := client.Ask(ctx, daemon, api.Lapse, api.LapseParams{NSParams: api.OfNS(c.NS), ID: c.ID, Force: c.Force})
	return a.done(attempt(lacking(err, "syncd member ls %s lists the members", c.NS), "lapse member %s of %q", c.ID, c.NS), map[string]string{"lapsed": c.ID},
		"the members of %s do not wait for %s any more", c.NS, c.ID)
}
