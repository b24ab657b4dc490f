package cli

import (
	"context"
	"strconv"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
)

type nsCmd struct {
	Create nsCreateCmd `cmd:"" help:"Make a namespace, with this node as its first admin."`
	Ls     nsLsCmd     `cmd:"" help:"List the namespaces of this node."`
	Rm     nsRmCmd     `cmd:"" help:"Delete a namespace from this node; the other members keep theirs."`
	Policy nsPolicyCmd `cmd:"" help:"Show what the members of a namespace agree on."`
}

type nsCreateCmd struct {
	Name     string        `arg:"" help:"1 to 64 letters, digits, '.', '_' or '-'; the name is local to this node."`
	Unsigned bool          `help:"Without signatures, for members that trust one another not to forge."`
	MaxSkew  time.Duration `help:"How far a version may be ahead of the receiver's clock." default:"5m"`
}

func (nsCreateCmd) Help() string {
	return `The policy (signatures, skew) is fixed when the namespace is made.

Example:
    syncd ns create notes`
}

// Run makes the namespace.
func (c nsCreateCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	ns, err := daemon.CreateNamespace(ctx, api.NewNamespace{Name: c.Name, Unsigned: c.Unsigned, MaxSkew: c.MaxSkew.String()})
	if err != nil {
		return attempt(err, "create namespace %q", c.Name)
	}
	if a.json() {
		return a.printJSON(ns)
	}
	a.remark("made namespace %s; let another node in with: syncd invite %s", ns.Name, ns.Name)
	return nil
}

type nsLsCmd struct{}

func (nsLsCmd) Help() string {
	return `"held" counts records, deleted ones included: they are tombstones, which syncs compare and carry like others.`
}

// Run lists the namespaces.
func (nsLsCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	all, err := daemon.Namespaces(ctx)
	if err != nil {
		return attempt(err, "list namespaces")
	}
	if a.json() {
		return a.printJSON(all)
	}
	return a.printNamespaces(all)
}

func (a *app) printNamespaces(all []api.Namespace) error {
	t := a.table("namespace", "role", "held", "members", "refused", "newest", "id")
	for _, ns := range all {
		newest := "-"
		if !ns.Clock.IsZero() {
			newest = ns.Clock.Format(time.RFC3339)
		}
		t.row(ns.Name, ns.Role, strconv.FormatInt(ns.Records, 10), strconv.Itoa(ns.Members), strconv.Itoa(ns.Rejected), newest, ns.ID)
	}
	return t.print()
}

type nsRmCmd struct {
	NS string `arg:"" name:"ns" help:"The namespace's name."`
}

func (nsRmCmd) Help() string {
	return `Deletes the namespace's records, its secret and its list of members from this node, for good.

Example:
    syncd ns rm notes`
}

// Run deletes the namespace.
func (c nsRmCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	if err := daemon.DropNamespace(ctx, c.NS); err != nil {
		return attempt(err, "remove namespace %q", c.NS)
	}
	if a.json() {
		return a.printJSON(map[string]string{"removed": c.NS})
	}
	a.remark("removed namespace %s from this node", c.NS)
	return nil
}

type nsPolicyCmd struct {
	NS string `arg:"" name:"ns" help:"The namespace's name."`
}

// Run shows the policy and the members it binds.
func (c nsPolicyCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	ns, err := daemon.NamespaceStatus(ctx, c.NS)
	if err != nil {
		return attempt(err, "policy of namespace %q", c.NS)
	}
	if a.json() {
		return a.printJSON(ns.Policy)
	}
	signed := "no: the node takes unsigned records from members that may write"
	if ns.Policy.Signed {
		signed = "yes: each record carries its writer's signature"
	}
	t := a.table("", "")
	t.row("signed", signed)
	t.row("max skew", ns.Policy.MaxSkew)
	return t.print()
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
	ns, err := daemon.Join(ctx, ticket)
	if err != nil {
		return attempt(err, "join")
	}
	if a.json() {
		return a.printJSON(ns)
	}
	if ns.Problem != "" {
		a.remark("joined namespace %s with role %s; the first sync failed, and is tried again: %s", ns.Name, ns.Role, ns.Problem)
		return nil
	}
	a.remark("joined namespace %s with role %s as one of %d members, and fetched %s, %s", ns.Name, ns.Role, ns.Members, countOf(ns.Fetched, "record"), size(ns.Bytes))
	return nil
}
