package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
)

type inviteCmd struct {
	New    inviteNewCmd    `cmd:"" default:"withargs" help:"Make a ticket; the word new may be left out."`
	Ls     inviteLsCmd     `cmd:"" help:"List the tickets that this node has issued."`
	Revoke inviteRevokeCmd `cmd:"" help:"Make a ticket useless."`
}

func (inviteCmd) Help() string {
	return `Examples:
    syncd invite notes
    syncd invite notes --role read --expires 1h
    syncd invite notes --uses 4
    syncd invite ls notes
    syncd invite revoke notes 4f1c2a90b7d3e865`
}

type inviteNewCmd struct {
	nsArg
	Role    string        `help:"What the joiner may do: read, write or admin." enum:"read,write,admin" default:"write"`
	Expires time.Duration `help:"For how long the ticket can be used, at most 8760h, which is a year." default:"24h"`
	Uses    int           `help:"How many nodes can join by the ticket." default:"1"`
}

func (inviteNewCmd) Help() string {
	return `Prints a ticket. It is a secret: the first nodes that present it become members. It takes the role admin to invite, and this node must run, and be an admin, when the ticket is used.

Examples:
    syncd invite notes
    syncd invite notes --role read --expires 1h
    syncd invite notes --uses 4`
}

// Run prints the ticket.
func (c inviteNewCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	if c.Uses < 1 {
		return problem.Usage("invite: --uses %d: want at least 1", c.Uses)
	}
	ticket, err := client.Send(ctx, daemon, api.MakeTicket, api.Invitation{NS: c.NS, Role: c.Role, Expires: c.Expires.String(), Uses: c.Uses})
	return a.answer(attempt(err, "invite to %q", c.NS), ticket, func() {
		where := "on the other node"
		if c.Uses > 1 {
			where = fmt.Sprintf("on up to %d other nodes", c.Uses)
		}
		a.remark(`%s, within %s: "syncd join TICKET"`, where, c.Expires)
		a.printf("%s\n", ticket.Ticket)
	})
}

type inviteLsCmd struct{ nsArg }

func (inviteLsCmd) Help() string {
	return `Tickets that are used up or have expired are among them for a week. The tickets themselves are not kept: an id names one and lets no node join.

Example:
    syncd invite ls notes`
}

// Run lists the tickets.
func (c inviteLsCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	got, err := client.Ask(ctx, daemon, api.ListInvites, api.OfNS(c.NS))
	return a.answer(attempt(err, "list the tickets of %q", c.NS), got, func() {
		t := a.table("ticket", "role", "issued", "expires", "used", "by")
		for _, i := range got.Invites {
			t.row(i.ID, i.Role, i.Issued.Format(time.RFC3339), i.Expires.Format(time.RFC3339), fmt.Sprintf("%d of %d", len(i.UsedBy), i.Uses), orDash(texts(i.UsedBy)))
		}
		t.print()
	})
}

type inviteRevokeCmd struct {
	nsArg
	ID string `arg:"" name:"id" help:"The ticket's id, as syncd invite ls prints it, or the ticket itself."`
}

func (inviteRevokeCmd) Help() string {
	return `The nodes that have joined by the ticket stay members; syncd member rm removes them.

Example:
    syncd invite revoke notes 4f1c2a90b7d3e865`
}

// Run revokes the ticket.
func (c inviteRevokeCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	_, err := client.Ask(ctx, daemon, api.Revoke, api.RevokeParams{NSParams: api.OfNS(c.NS), ID: c.ID})
	return a.done(attempt(lacking(err, "syncd invite ls %s lists the tickets", c.NS), "revoke a ticket of %q", c.NS), map[string]string{"revoked": c.ID},
		"the ticket is of no use any more; the nodes that have joined by it stay members")
}

type joinCmd struct {
	Ticket string `arg:"" help:"What syncd invite printed; - reads it from standard input."`
}

func (joinCmd) Help() string {
	return `Connects to the node that made the ticket, becomes a member, and fetches the records that the inviter has.

Examples:
    syncd join "$TICKET"
    ssh other syncd invite notes -q | syncd join -`
}

// Run redeems the ticket.
func (c joinCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	ticket := c.Ticket
	if ticket == "-" {
		var err error
		if ticket, err = readTicket(a.stdin); err != nil {
			return err
		}
	}
	ns, err := client.Send(ctx, daemon, api.Join, api.Ticket{Ticket: ticket})
	return a.answer(attempt(err, "join"), ns, func() {
		if ns.Problem != "" {
			a.remark("joined namespace %s with role %s; the first sync failed, and is tried again: %s", ns.Name, ns.Role, ns.Problem)
			return
		}
		a.remark("joined namespace %s with role %s as one of %d members, and fetched %s, %s", ns.Name, ns.Role, ns.Members, countOf(ns.Fetched, "record"), size(ns.Bytes))
	})
}

// maxTicket bounds a ticket read from standard input, in bytes; a real one
// holds at most a few addresses.
const maxTicket = 64 << 10

// readTicket reads one ticket, with white space around it.
func readTicket(r io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxTicket+1))
	if err != nil {
		return "", fmt.Errorf("reading the ticket: %w", err)
	}
	fields := strings.Fields(string(b))
	if len(b) > maxTicket || len(fields) != 1 {
		return "", problem.Usage("reading the ticket: want one word of at most %d bytes on standard input", maxTicket)
	}
	return fields[0], nil
}
