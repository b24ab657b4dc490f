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
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/offline"
	"github.com/syncd-io/syncd/peer/status"
)

type verifyCmd struct {
	NS         string `arg:"" optional:"" name:"ns" help:"The namespace's name; all, if it is left out."`
	Repair     bool   `help:"Give a stopped node a new store in the place of its damaged one." xor:"what"`
	AcceptLoss bool   `help:"End what is said of a loss by damage to the store." xor:"what"`
}

func (verifyCmd) Help() string {
	return `Reads the files of the store through, and each record beside the entry of its index, while the daemon goes on; exit code 7 says that something is damaged or lost, and what. By placement writer it reads the values of the records, too, at other members where they are there, and lists those that no host gives. What the daemon keeps of the records for syncs is computed anew, and is put right where it is wrong. A daemon does the same by itself, slowly, once a day. A store in PostgreSQL has no files that syncd could read: see the server's data checksums, and pg_amcheck.

--repair gives a node that does not run a new store. What the database of the damaged one still reads is carried over; where it does not open, that is nothing. The damaged files are kept in the folder damaged of the data directory until you remove them, and as much room is needed as the store takes. Once the daemon runs, syncs with the members bring back what they hold, and until then the node counts as one that may lack records. What only this node had written is lost for good. Nothing tells whether there was any: status and exit code 7 say so until --accept-loss.

Examples:
    syncd verify
    syncd verify notes
    syncd verify --repair
    syncd verify --accept-loss`
}

// Run verifies one namespace, or all of them.
func (c verifyCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	if c.Repair {
		return c.repair(ctx, a)
	}
	names := []string{c.NS}
	if c.NS == "" {
		st, err := client.Ask(ctx, daemon, api.GetStatus, api.None{})
		if err != nil {
			return attempt(err, "list the namespaces")
		}
		names = names[:0]
		for _, ns := range st.Unserved {
			names = append(names, ns.Name)
		}
		for _, ns := range st.Namespaces {
			names = append(names, ns.Name)
		}
	}
	var failed error
	found, lacks := map[string]api.Verification{}, false
	for _, name := range names {
		if c.AcceptLoss {
			failed = errors.Join(failed, attempt(c.accept(ctx, a, daemon, name), "accept what is lost in %q", name))
			continue
		}
		v, err := client.Ask(ctx, daemon, api.Verify, api.OfNS(name))
		if err != nil {
			failed = errors.Join(failed, attempt(err, "verify %q", name))
			continue
		}
		a.sayVerified(name, &v)
		found[name], lacks = v, lacks || v.Lost != nil || v.Missing != nil && v.Missing.Lost
	}
	switch {
	case failed != nil:
		return failed
	case !a.json() || c.AcceptLoss:
	case c.NS != "":
		a.printJSON(found[c.NS])
	default:
		a.printJSON(found)
	}
	if lacks {
		return &saidError{problem.ExitCorrupt}
	}
	return nil
}

// accept ends what is said of a loss, and says what that was.
func (verifyCmd) accept(ctx context.Context, a *app, daemon *client.Client, name string) error {
	ns, err := client.Ask(ctx, daemon, api.GetNamespace, api.StatusParams{NSParams: api.OfNS(name)})
	if err == nil {
		_, err = client.Ask(ctx, daemon, api.AcceptLoss, api.OfNS(name))
	}
	if err != nil || ns.Lost == nil {
		return err
	}
	what := "how many records were missing is not known"
	if ns.Lost.Records > 0 {
		what = countOf(ns.Lost.Records, "record") + " missing then"
	}
	a.remark("%s: the loss of %s is accepted: %s", name, ns.Lost.At.Format(time.RFC3339), what)
	return nil
}

// sayVerified says what a verification has found.
func (a *app) sayVerified(name string, v *api.Verification) {
	files := ""
	if !v.Files {
		files = "; the files of the store were not examined"
	}
	are := "are"
	if v.Records == 1 {
		are = "is"
	}
	a.remark("%s: %s %s whole%s", name, countOf(v.Records, "record"), are, files)
	if v.Drift != "" {
		a.remark("%s: what the daemon kept of them had drifted and is put right: %s; please report it", name, v.Drift)
	}
	sayMissing(a, name, v.Missing)
	sayLost(a, name, v.Lost)
}

// sayMissing says which values no host gives.
func sayMissing(a *app, name string, m *api.Missing) {
	if m == nil {
		return
	}
	for _, key := range m.Keys[:min(len(m.Keys), mostNamed)] {
		a.remark("%s: no host gives the value of %q", name, key.Bytes())
	}
	if m.Lost {
		a.remark("%s: the values of %d records are missing, and some are lost: syncd why names the hosts of a key's value; where none can come back with it, write it anew, or delete the key", name, m.Count)
		return
	}
	a.remark("%s: the values of %d records are missing, and hosts have not answered: verify again when they can be reached", name, m.Count)
}

// mostNamed is how many keys are named.
const mostNamed = 10

// sayLost says what damage has cost.
func sayLost(a *app, name string, l *status.Lost) {
	if l != nil {
		a.remark("%s: %s", name, lostBy(l))
	}
}

// lostBy says what damage has cost, and what to do.
func lostBy(l *status.Lost) string {
	what := "records may be missing or older ones"
	if l.Records > 0 {
		what = countOf(l.Records, "record") + " missing then"
	}
	if len(l.Shards) > 0 {
		what += fmt.Sprintf(", of the shards %s", strings.Trim(fmt.Sprint(l.Shards), "[]"))
	}
	return fmt.Sprintf("the store was damaged, and made anew at %s: %s; members give back what they hold (syncd sync), and what only this node had written is lost for good; once it is in sync again, end this (syncd verify --accept-loss)", l.At.Format(time.RFC3339), what)
}

// repair repairs the store of a daemon that does not run.
func (verifyCmd) repair(ctx context.Context, a *app) error {
	done, err := offline.Repair(ctx, a.DataDir, nil)
	if errors.Is(err, peer.ErrLocked) {
		return fmt.Errorf("%w: a daemon runs on this data directory: stop it first, and start it again afterwards", err)
	}
	if err != nil {
		return err
	}
	out := struct {
		Kept       string                  `json:"kept"`
		Why        string                  `json:"why,omitempty"`
		Namespaces map[string]*status.Lost `json:"namespaces"`
		Strange    []string                `json:"strange,omitempty"`
	}{Kept: done.Kept, Strange: done.Strange, Namespaces: map[string]*status.Lost{}}
	if done.Why != nil {
		out.Why = done.Why.Error()
	}
	for _, ns := range done.Namespaces {
		out.Namespaces[ns.Name] = ns.Lost
	}
	a.print(out, func() {
		if out.Why != "" {
			a.remark("nothing could be carried over from the damaged store: %s", out.Why)
		}
		for _, ns := range done.Namespaces {
			sayLost(a, ns.Name, out.Namespaces[ns.Name])
		}
		for _, id := range out.Strange {
			a.remark("the set of records %s, of which no folder is here, stays with the damaged files", id)
		}
		a.remark("the damaged files are kept in %s: remove them when nothing is missing", done.Kept)
		a.remark("%s has a new store; start the daemon (syncd serve): members give back what they hold", a.DataDir)
	})
	if len(done.Namespaces) > 0 {
		return &saidError{problem.ExitCorrupt}
	}
	return nil
}

type gcCmd struct {
	NS     string `arg:"" optional:"" name:"ns" help:"The namespace's name; all, if it is left out."`
	DryRun bool   `help:"Say what waits and what holds it back, and take out nothing."`
}

func (gcCmd) Help() string {
	return `A deleted record leaves a tombstone, so that it stays deleted everywhere. The tombstone goes once all members are past it; likewise a record that has expired. Daemons see to that by themselves, within minutes. gc does now what they would do, and says which member holds the rest back, and since when: a member that is silent for good is let go with syncd member lapse.

Examples:
    syncd gc
    syncd gc notes --dry-run`
}

// Run collects, or says what a collection waits for.
func (c gcCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	names, err := namesOf(ctx, daemon, c.NS)
	if err != nil {
		return attempt(err, "list the namespaces")
	}
	route := api.Collect
	if c.DryRun {
		route = api.GetCollection
	}
	found := map[string]api.Collection{}
	for _, name := range names {
		got, err := client.Ask(ctx, daemon, route, api.OfNS(name))
		if err != nil {
			return attempt(err, "collect in %q", name)
		}
		found[name] = got
	}
	out := any(found)
	if c.NS != "" {
		out = found[c.NS]
	}
	return a.answer(nil, out, func() {
		for _, name := range names {
			a.printCollection(name, found[name])
		}
	})
}

func (a *app) printCollection(name string, c api.Collection) {
	if c.Swept != nil {
		a.remark("%s: %d deleted or expired records are gone", name, c.Swept.Collected)
		if n := c.Swept.Adopted + c.Swept.SetAside; n > 0 {
			a.remark("%s: of writers that lost their right, %d records were written again here and %d set aside", name, c.Swept.Adopted, c.Swept.SetAside)
		}
	}
	switch {
	case !c.Counted:
		a.remark("%s: what waits is not counted yet", name)
	case c.Waiting == 0:
		a.remark("%s: nothing waits", name)
	default:
		a.remark("%s: at most %d deleted or expired records wait, the oldest since %s", name, c.Waiting, c.Oldest.Format(time.RFC3339))
	}
	if c.Recovering {
		a.remark("%s: this node has to be found equal with another member first; sync with one", name)
	}
	if len(c.Holding) == 0 {
		return
	}
	t := a.table("waits for", "known up to", "heard", "because")
	for _, h := range c.Holding {
		t.row(h.Member.String(), moment(h.Since), moment(h.Synced), h.Reason)
	}
	t.print()
}

// moment is a time, or a dash for the zero time.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.RFC3339)
}

// silent says which members hold the collection back and were not heard for long.
func silent(ns *api.Namespace) (troubles []string) {
	for _, h := range ns.Silent {
		troubles = append(troubles, fmt.Sprintf("member %s was last heard at %s, and deleted records wait for it; if it is not coming back: syncd member lapse %s %s", h.Member, moment(h.Synced), ns.Name, h.Member))
	}
	return troubles
}

type restampCmd struct {
	nsArg
	DryRun bool `help:"List the records from the future, and change nothing."`
}

func (restampCmd) Help() string {
	return `For a clock that was wrong, and is right now. What this node wrote meanwhile lies in the future: the other members decline it, and this node refuses to write after it. Each such record gets a version of now with the same content, and so wins over what was written to its key before now. Records of other members are listed and stay: their writers restamp them. A node that holds such records of a writer that has restamped already removes the namespace and joins it again.

Set the clock first: restamp trusts it.

Examples:
    syncd restamp notes --dry-run
    syncd restamp notes`
}

// Run restamps, or lists what a restamp would change.
func (c restampCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	if c.DryRun {
		f, err := client.Ask(ctx, daemon, api.GetFuture, api.OfNS(c.NS))
		return a.answer(attempt(err, "list what is from the future in %q", c.NS), f, func() {
			a.remark("this machine's clock says %s; a restamp would change %d records, and leave %d of other members", f.Now.Format(time.RFC3339), f.Own, f.Others)
			a.printFuture(f)
		})
	}
	r, err := client.Ask(ctx, daemon, api.Restamp, api.OfNS(c.NS))
	return a.answer(attempt(err, "restamp %q", c.NS), r, func() {
		a.remark("%d records have a version of now, %s", r.Restamped, r.Left.Now.Format(time.RFC3339))
		if r.Left.Others > 0 {
			a.remark("%d records of other members are from the future, and writes are refused until their time has come: where their writers have restamped already, remove the namespace here and join it again", r.Left.Others)
			a.printFuture(r.Left)
		}
	})
}

func (a *app) printFuture(f api.Future) {
	if len(f.Records) == 0 {
		return
	}
	t := a.table("key", "time", "written")
	for _, r := range f.Records {
		by := "elsewhere"
		if r.Own {
			by = "here"
		}
		t.row(show(r.Bytes()), r.Time.Format(time.RFC3339), by)
	}
	t.print()
	if more := f.Own + f.Others - len(f.Records); more > 0 {
		a.remark("and %d more", more)
	}
}
