package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
)

type statusCmd struct {
	NS      string        `name:"ns" help:"Show this namespace: its members, and what was refused." placeholder:"NS" xor:"what"`
	Cluster bool          `help:"Ask all members how they are: of the namespace, or of all."`
	Within  time.Duration `help:"With --cluster: how long the answers may take." default:"5s"`
	ID      bool          `name:"id" help:"Print the node's id, and nothing else." xor:"what"`
}

func (statusCmd) Help() string {
	return `--cluster asks all members at once. Of each it says whether it answers, whether it holds what this node holds, and if not how many records fewer and by how much its newest version is older; when a sync has last proved it equal to a member, and how many differences that sync had found; by how much its clock is behind; the version of its program, what its files take and what is free on its disk. Of a member that is away it says when this node was last proved equal to it. In a namespace that is cut into shards it says how what a member holds of each shard compares with what the shard's other holders do; a member answers some 400 such questions at once, and 200 a second, so give many shards --within 30s.

Examples:
    syncd status
    syncd status --cluster
    syncd status --cluster --ns notes -o json | jq '.[].cluster[] | select(.equal | not)'
    syncd status --id
    syncd status --ns notes -o json`
}

// Run shows the node, or one namespace.
func (c statusCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	if c.Cluster {
		return c.cluster(ctx, a, daemon)
	}
	if c.NS != "" {
		return c.namespace(ctx, a, daemon)
	}
	st, err := client.Ask(ctx, daemon, api.GetStatus, api.None{})
	if err != nil {
		return attempt(err, "status")
	}
	switch {
	case c.ID:
		return a.answer(nil, map[string]string{"id": st.ID}, func() { a.printf("%s\n", st.ID) })
	case a.json():
		a.printJSON(st)
		return nil
	}
	last, err := client.Ask(ctx, daemon, api.ListSyncs, api.None{})
	return a.answer(attempt(err, "status"), st, func() { a.printStatus(&st, last.Syncs) })
}

// printStatus shows the node, and its last syncs.
func (a *app) printStatus(st *api.Status, syncs []api.SyncEnd) {
	t := a.table("", "")
	t.row("node", st.ID)
	for _, addr := range st.Addrs {
		t.row("address", addr)
	}
	t.row("up for", time.Since(st.Started).Round(time.Second).String())
	t.row("syncs running", fmt.Sprint(st.Syncs))
	if st.Clock != nil && st.Clock.Off {
		t.row("clock", clockOff(st.Clock))
	}
	for _, c := range st.Troubles {
		t.row("cannot work", fmt.Sprintf("%s since %s: %s", strings.ReplaceAll(string(c.Kind), "_", " "), c.Since.Format(time.RFC3339), c.Cause))
	}
	if st.Damage != nil {
		t.row("damage", a.here(damaged(st.Damage, "")))
	}
	t.print()
	if len(st.Namespaces) > 0 {
		a.printf("\n")
		a.printNamespaces(st.Namespaces)
	}
	for _, u := range st.Unserved {
		why := cmp.Or(u.Why, "its records are damaged; stop the daemon, run syncd verify --repair, and start it again")
		a.printf("\n%s: it is not served: %s\n", u.Name, a.here(why))
	}
	for i := range st.Namespaces {
		ns := &st.Namespaces[i]
		for _, notice := range slices.Concat(pauses(ns), membershipTroubles(ns), lonely(ns, st.Peers), keptNotices(ns), clockTroubles(ns), silent(ns), shortOf(ns)) {
			a.printf("\n%s: %s\n", ns.Name, a.here(notice))
		}
	}
	for _, p := range st.Peers {
		if p.Paused {
			a.printf("\npeer %s is paused: no syncs with it until: %s\n", p.ID, a.here("syncd peer resume "+p.ID.String()))
		}
	}
	if len(syncs) > 0 {
		a.printSyncs(syncs)
	}
}

// keptNotices says what a namespace keeps for a person to look at.
func keptNotices(ns *api.Namespace) (notices []string) {
	if ns.Conflicts > 0 {
		notices = append(notices, fmt.Sprintf("%s: syncd conflicts %s lists them", countOf(ns.Conflicts, "conflict"), ns.Name))
	}
	if ns.SetAside > 0 {
		notices = append(notices, fmt.Sprintf("%s set aside: syncd rejected %s lists them", countOf(ns.SetAside, "record"), ns.Name))
	}
	return notices
}

// clockTroubles says what is wrong with a namespace because a clock is, or was.
func clockTroubles(ns *api.Namespace) (troubles []string) {
	if ns.Ahead != "" {
		troubles = append(troubles, fmt.Sprintf("writes are refused: the newest version is too far ahead of this machine's clock, by %s; if the clock is right: syncd restamp %s", ns.Ahead, ns.Name))
	}
	for _, d := range ns.Declined {
		troubles = append(troubles, fmt.Sprintf("%s declined by peer %s: their times are ahead of its clock; is this machine's clock right?", countOf(d.Records, "record"), d.Peer))
	}
	return troubles
}

// lastSyncs is how many syncs status shows.
const lastSyncs = 5

func (a *app) printSyncs(syncs []api.SyncEnd) {
	t := a.table("sync", "", "namespace", "peer", "differences", "outcome")
	for _, s := range syncs[:min(len(syncs), lastSyncs)] {
		way, outcome := "begun here", "in sync"
		if s.Incoming {
			way = "begun there"
		}
		switch {
		case s.Error != "":
			outcome = s.Error
		case !s.Report.Verified:
			outcome = "not verified"
		case s.DryRun && s.Report.Differences() > 0:
			outcome = "differs; nothing was moved"
		}
		t.row(s.Time.Format(time.RFC3339), way, s.Report.Namespace, short(s.Report.Peer), fmt.Sprint(s.Report.Differences()), outcome)
	}
	t.after()
}

func (c statusCmd) namespace(ctx context.Context, a *app, daemon *client.Client) error {
	ns, err := client.Ask(ctx, daemon, api.GetNamespace, api.StatusParams{NSParams: api.OfNS(c.NS)})
	return a.answer(attempt(err, "status of namespace %q", c.NS), ns, func() { a.printNamespace(&ns) })
}

func (a *app) printNamespace(ns *api.NamespaceStatus) {
	t := a.table("", "")
	t.row("namespace", ns.Name)
	t.row("id", ns.ID)
	t.row("held", countOf(ns.Records, "record")+", deleted ones included")
	t.row("digest", ns.Digest)
	if s := ns.Shards; s != nil {
		t.row("shards", shardsLine(s, ns.Policy.Placement))
	}
	for _, part := range []struct {
		about   string
		notices []string
	}{
		{"syncs", pauses(&ns.Namespace)},
		{"kept", keptNotices(&ns.Namespace)},
		{"member", membershipTroubles(&ns.Namespace)},
		{"clock", clockTroubles(&ns.Namespace)},
		{"silent", silent(&ns.Namespace)},
		{"replicas", shortOf(&ns.Namespace)},
	} {
		for _, notice := range part.notices {
			t.row(part.about, notice)
		}
	}
	t.print()
	a.printf("\n")
	a.printMembers(ns.MemberList)
	if len(ns.Rejections) > 0 {
		a.printf("\n")
		a.printRefused(ns.Rejections)
	}
}
