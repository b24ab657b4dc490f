package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer/status"
)

type nsCmd struct {
	Create  nsCreateCmd  `cmd:"" help:"Make a namespace, with this node as its first admin."`
	Ls      nsLsCmd      `cmd:"" help:"List the namespaces of this node."`
	Rm      nsRmCmd      `cmd:"" help:"Delete a namespace from this node."`
	Policy  nsPolicyCmd  `cmd:"" help:"Show what the members of a namespace agree on."`
	Layout  nsLayoutCmd  `cmd:"" help:"Show which members hold each shard of a namespace."`
	Reindex nsReindexCmd `cmd:"" help:"By placement writer: give lost records back to the hosts of their keys."`
}

// nsArg is a namespace on the command line.
type nsArg struct {
	NS string `arg:"" name:"ns" help:"The namespace's name."`
}

type nsCreateCmd struct {
	Name     string        `arg:"" help:"1 to 64 letters, digits, '.', '_' or '-'; the name is local to this node."`
	Unsigned bool          `help:"Without signatures, for members that trust one another not to forge."`
	MaxSkew  time.Duration `help:"How far a version may be ahead of the receiver's clock." default:"5m"`

	Placement string   `help:"Cut the namespace into shards, of which each member holds some: by hash, prefix or writer." placeholder:"KIND" predictor:"placement"`
	Shards    *int     `help:"With --placement: how many shards, a power of two from 2 to 4096; 32 without it." placeholder:"N"`
	Replicas  *int     `help:"With --placement: how many members are to hold each shard, 1 to 16; 3 without it." placeholder:"N"`
	Prefix    []string `help:"With --placement prefix: keys that begin with PREFIX belong to that shard, the first of which is 0; once for each prefix." placeholder:"PREFIX=SHARD" sep:"none"`
	Inline    *int     `help:"With --placement writer: values of at most so many bytes are in their records, 0 to 65536; 1024 without it." placeholder:"BYTES"`
	Locator   bool     `help:"With --placement: each member keeps a compressed copy of which keys there are, so that a read at level one of a key that there is not takes no request."`
}

// placement is how the namespace is to be cut; nil: it is one shard.
func (c *nsCreateCmd) placement() (*api.Placement, error) {
	if c.Placement == "" {
		if c.Shards != nil || c.Replicas != nil || len(c.Prefix) > 0 || c.Inline != nil || c.Locator {
			return nil, problem.Usage("--shards, --replicas, --prefix, --inline and --locator need --placement hash, prefix or writer")
		}
		return nil, nil
	}
	p := &api.Placement{Kind: c.Placement, Shards: 32, Replicas: 3, Inline: c.Inline, Locator: c.Locator}
	if c.Shards != nil {
		p.Shards = *c.Shards
	}
	if c.Replicas != nil {
		p.Replicas = *c.Replicas
	}
	for _, line := range c.Prefix {
		at := strings.LastIndexByte(line, '=')
		shard, err := strconv.Atoi(line[at+1:])
		if at < 1 || err != nil {
			return nil, problem.Usage("--prefix %s: want PREFIX=SHARD, such as debian/=3", line)
		}
		p.Prefixes = append(p.Prefixes, api.PrefixShardOf([]byte(line[:at]), shard))
	}
	return p, nil
}

func (nsCreateCmd) Help() string {
	return `The policy (signatures, skew) and the placement (shards) are fixed when the namespace is made.

Without --placement all members hold all records. With it, each shard is kept by as many hosts as --replicas says, and any member reads and writes all keys. A majority of the hosts must answer: of 3 one may be down, of 2 none. Members that may write are hosts, unless they run with serve --no-host. Shards move by themselves when members come and go: ns layout shows where they are. hash spreads keys by a hash of each; prefix keeps keys of one prefix together. writer spreads keys as hash does, but a value of more than --inline bytes goes to a shard of the node that writes it, so that it crosses the wire once a replica less, and the key's hosts have a small record that points to it. Keys may not begin with a zero byte there.

With --locator the hosts tell all members which keys there are: get --read one of a key that there is not asks no node, and a key that another node has written a moment before, 5 s at most, may not be found. Each member takes 4.5 bytes a key in memory and on its disk for that, and hears of each new key. The placement writer always has a locator.

Examples:
    syncd ns create notes
    syncd ns create packages --placement hash --shards 32 --replicas 3
    syncd ns create names --placement hash --locator
    syncd ns create photos --placement writer
    syncd ns create releases --placement prefix --shards 4 --prefix stable/=0 --prefix testing/=1`
}

// Run makes the namespace.
func (c nsCreateCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	placement, err := c.placement()
	if err != nil {
		return err
	}
	ns, err := client.Send(ctx, daemon, api.CreateNamespace, api.NewNamespace{Name: c.Name, Unsigned: c.Unsigned, MaxSkew: c.MaxSkew.String(), Placement: placement})
	return a.done(attempt(err, "create namespace %q", c.Name), ns,
		"made namespace %s; let another node in with: syncd invite %s", ns.Name, ns.Name)
}

type nsLsCmd struct{}

func (nsLsCmd) Help() string {
	return `"held" counts records, deleted ones included: they are tombstones, which syncs compare and carry like others. In a namespace of shards it counts those of the shards that this node holds.`
}

// Run lists the namespaces.
func (nsLsCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	all, err := client.Ask(ctx, daemon, api.ListNamespaces, api.None{})
	return a.answer(attempt(err, "list namespaces"), all.Namespaces, func() { a.printNamespaces(all.Namespaces) })
}

// namesOf are the names of all namespaces, or the one that is given.
func namesOf(ctx context.Context, daemon *client.Client, given string) (names []string, err error) {
	if given != "" {
		return []string{given}, nil
	}
	all, err := client.Ask(ctx, daemon, api.ListNamespaces, api.None{})
	for _, ns := range all.Namespaces {
		names = append(names, ns.Name)
	}
	return names, err
}

func (a *app) printNamespaces(all []api.Namespace) {
	t := a.table("namespace", "role", "held", "members", "refused", "newest", "id")
	for _, ns := range all {
		t.row(ns.Name, ns.Role, strconv.FormatInt(ns.Records, 10), strconv.Itoa(ns.Members), strconv.Itoa(ns.Rejected), moment(ns.Clock), ns.ID)
	}
	t.print()
}

type nsRmCmd struct {
	nsArg
	Force bool `help:"Also what this node may hold alone, which is lost, and as the last admin."`
}

func (nsRmCmd) Help() string {
	return `Deletes the namespace's records, its secret and its list of members from this node, for good. The other members keep what they hold.

It is refused where that would lose something: writes that no sync has proved another member to hold, or records that syncd rejected lists as set aside (exit 1). So it is where the other members would have no admin left (exit 6). The message says what to do first; --force goes on.

In a namespace of shards that may not be all: while there are other members the node first hands its shards over. An admin who stays gives it the role read, and the command is refused (exit 1) until status counts no shard as held. The node stays a member until member rm.

Examples:
    syncd ns rm notes
    syncd --data-dir other member set packages 12D3KooW… --role read   # as an admin, elsewhere
    syncd ns rm packages                                               # some sync intervals later`
}

// Run deletes the namespace.
func (c nsRmCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	_, err := client.Ask(ctx, daemon, api.DropNamespace, api.DropParams{NSParams: api.OfNS(c.NS), Force: c.Force})
	return a.done(attempt(err, "remove namespace %q", c.NS), map[string]string{"removed": c.NS},
		"removed namespace %s from this node", c.NS)
}

type nsPolicyCmd struct{ nsArg }

// Run shows the policy and the members it binds.
func (c nsPolicyCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	ns, err := client.Ask(ctx, daemon, api.GetNamespace, api.StatusParams{NSParams: api.OfNS(c.NS)})
	return a.answer(attempt(err, "policy of namespace %q", c.NS), ns.Policy, func() {
		signed := "no: the node takes unsigned records from members that may write"
		if ns.Policy.Signed {
			signed = "yes: each record carries its writer's signature"
		}
		t := a.table("", "")
		t.row("signed", signed)
		t.row("max skew", ns.Policy.MaxSkew)
		if p := ns.Policy.Placement; p != nil {
			t.row("placement", fmt.Sprintf("%s, %d shards of %s", p.Kind, p.Shards, countOf(p.Replicas, "replica")))
			if p.Inline != nil {
				t.row("inline", fmt.Sprintf("values of at most %d bytes are in their records; larger ones stay with their writers", *p.Inline))
			}
			if p.Locator {
				t.row("locator", "yes: each member knows which keys there are, and a read at level one of a key that there is not takes no request")
			}
			for _, one := range p.Prefixes {
				t.row("prefix "+show(one.Bytes()), fmt.Sprintf("shard %d", one.Shard))
			}
		}
		t.print()
	})
}

type nsLayoutCmd struct {
	nsArg
	Force bool `help:"At an admin: name what is left of shards that have lost a majority of their hosts for good."`
}

func (nsLayoutCmd) Help() string {
	return `Shows which members hold each shard. One that moves is shown as "old hosts -> new hosts", with the new hosts that are not ready yet: reads and writes need a majority of both meanwhile. The move ends by itself once all are ready and an admin's node runs.

With --force an admin's node asks the hosts of each shard. Where no majority of them answers, it names those that are left as the shard's hosts, so that reads and writes go on. What only the others held is lost for good. Use it only if they cannot come back; lapse or remove each of them first. Some seconds later the next layout leaves these out, and writes at quorum go on.

Examples:
    syncd ns layout packages
    syncd member lapse packages 12D3KooW… --force && syncd ns layout packages --force`
}

func (c nsLayoutCmd) force(ctx context.Context, a *app, daemon *client.Client) error {
	forced, err := client.Ask(ctx, daemon, api.ForceLayout, api.OfNS(c.NS))
	return a.answer(attempt(err, "force the layout of namespace %q", c.NS), forced, func() {
		if len(forced.Shards) == 0 {
			a.remark("each shard has a majority of its old hosts: nothing was changed; new hosts that are away hold up writes until some seconds after they are lapsed (syncd member lapse %s ID)", c.NS)
		}
		for _, l := range forced.Shards {
			lost := "what only the others held is lost"
			if !l.Whole {
				lost = "no host had all that it must have, and what was acknowledged may be lost"
			}
			a.printf("shard %d: %d of %d hosts are left (%s); %s\n", l.Shard, len(l.Hosts), l.Of, orDash(texts(l.Hosts)), lost)
		}
	})
}

// Run shows the hosts of each shard.
func (c nsLayoutCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	if c.Force {
		return c.force(ctx, a, daemon)
	}
	l, err := client.Ask(ctx, daemon, api.GetLayout, api.OfNS(c.NS))
	return a.answer(attempt(err, "layout of namespace %q", c.NS), l, func() {
		a.remark("epoch %d, stated by %s at %s", l.Epoch, l.By, l.At.Format(time.RFC3339))
		t := a.table("SHARD", "HOSTS")
		for shard, hosts := range l.Hosts {
			text := orDash(texts(hosts))
			if i := slices.IndexFunc(l.Moves, func(m status.Move) bool { return m.Shard == shard }); i >= 0 {
				text = moveOf(&l.Moves[i], func(id string) string { return id })
			}
			t.row(strconv.Itoa(shard), text)
		}
		t.print()
	})
}

type nsReindexCmd struct{ nsArg }

func (nsReindexCmd) Help() string {
	return `By placement writer a large value is kept by other hosts than its key. They are told the record of the key. Where all hosts of keys have lost their data for good, this hands those records to the hosts that have these keys now. Run it at each node. Small values are not among them, and what the hosts hold that is later stays.

Exit code 8 when a majority of a key's hosts has not taken its record; the others are handed on all the same.

Examples:
    syncd ns reindex photos`
}

// Run hands the records on.
func (c nsReindexCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	r, err := client.Ask(ctx, daemon, api.Reindex, api.OfNS(c.NS))
	return a.done(attempt(err, "reindex namespace %q", c.NS), r,
		"handed %s to the hosts of their keys", countOf(r.Records, "record"))
}
