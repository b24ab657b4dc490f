package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

type verifyCmd struct {
	NS         string `arg:"" optional:"" name:"ns" help:"The namespace's name; all, if it is left out."`
	Repair     bool   `help:"Leave what is damaged behind, and take back from members what is missing then." xor:"what"`
	AcceptLoss bool   `help:"End the list of what a repair could not get back." xor:"what"`
}

func (verifyCmd) Help() string {
	return `Reads the files of the store through, and each record beside the entry of its index, while the daemon goes on; exit code 7 says that something is damaged or lost, and what. By placement writer it reads the values of the records, too, at other members where they are there, and lists those that no host gives. What the daemon keeps of the records for syncs is computed anew, and is put right where it is wrong. A daemon does the same by itself, slowly, once a day. A store in PostgreSQL has no files that syncd could read: see the server's data checksums, and pg_amcheck.

--repair makes the files of a damaged store anew, without what is damaged; writes wait meanwhile, and as much room is needed as the store takes. What is missing then is named, and taken back from the members that can be reached. What none of them holds is lost: the namespace's status lists it, and exit code 7 says so, until a member gives it back or --accept-loss ends the list. Where no daemon runs, since it cannot open the damaged store, the store is repaired all the same, whole, and the damaged files are kept in the folder damaged of the data directory until you remove them; the members give back what is missing once the daemon runs.

Examples:
    syncd verify
    syncd verify notes
    syncd verify --repair`
}

// Run verifies one namespace, or all of them.
func (c verifyCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	names := []string{c.NS}
	if c.NS == "" || c.Repair {
		st, err := daemon.Status(ctx)
		if c.Repair && errors.Is(err, problem.ErrNoDaemon) {
			return c.salvage(ctx, a)
		}
		if err != nil {
			return attempt(err, "list the namespaces")
		}
		if c.NS == "" {
			names = names[:0]
			for _, ns := range st.Unserved { // first: their repair is one of all files
				names = append(names, ns.Name)
			}
			for _, ns := range st.Namespaces {
				names = append(names, ns.Name)
			}
		}
	}
	var failed error
	found, lacks := map[string]any{}, false
	for _, name := range names {
		v, lost, err := c.one(ctx, a, daemon, name)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		found[name], lacks = v, lacks || lost
	}
	if failed != nil {
		return failed
	}
	if a.json() && !c.AcceptLoss {
		out := any(found)
		if c.NS != "" {
			out = found[c.NS]
		}
		if err := a.printJSON(out); err != nil {
			return err
		}
	}
	if lacks {
		return &saidError{problem.ExitCorrupt}
	}
	return nil
}

// one verifies a namespace, repairs it, or accepts what it lacks. lacks: something is
// lost.
func (c verifyCmd) one(ctx context.Context, a *app, daemon *client.Client, name string) (out any, lacks bool, err error) {
	if c.AcceptLoss {
		return nil, false, attempted(daemon.AcceptLoss(ctx, name), "accept what is lost in %q", name)
	}
	if !c.Repair {
		v, err := daemon.Verify(ctx, name)
		if err != nil {
			return nil, false, attempt(err, "verify %q", name)
		}
		c.say(a, name, &v)
		return v, v.Lost != nil || v.Missing != nil && v.Missing.Lost, nil
	}
	r, err := daemon.Repair(ctx, name)
	if err != nil {
		return nil, false, attempt(err, "repair %q", name)
	}
	if !a.json() {
		for _, where := range r.Damage {
			a.remark("damaged, and left behind: %s", where)
		}
		if len(r.From) > 0 {
			a.remark("%s: %d records came from %s", name, r.Regained, strings.Join(r.From, ", "))
		}
	}
	c.say(a, name, &r.Verification)
	return r, r.Lost != nil, nil
}

// attempted is attempt, where there may be no error.
func attempted(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return attempt(err, format, args...)
}

func (verifyCmd) say(a *app, name string, v *api.Verification) {
	if a.json() {
		return
	}
	files := ""
	if !v.Files {
		files = "; the files of the store were not examined"
	}
	a.remark("%s: %d records are whole%s", name, v.Records, files)
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

// sayLost says what is lost.
func sayLost(a *app, name string, l *api.Lost) {
	if l == nil {
		return
	}
	for _, key := range l.Keys[:min(len(l.Keys), mostNamed)] {
		a.remark("%s: the record %q is lost", name, key.Bytes())
	}
	if more := len(l.Keys) - mostNamed; more > 0 {
		a.remark("%s: %d more records are lost; -o json lists their keys", name, more)
	}
	switch {
	case l.Unnamed < 0:
		a.remark("%s: records may be lost whose keys are lost, too", name)
	case l.Unnamed > 0:
		a.remark("%s: up to %d records are lost whose keys are lost, too", name, l.Unnamed)
	}
	if l.SetAside > 0 {
		a.remark("%s: %d records were set aside since they may not be the newest (syncd rejected)", name, l.SetAside)
	}
	if l.Kept > 0 {
		a.remark("%s: %d entries of what was kept are lost", name, l.Kept)
	}
	if l.Older || l.Control {
		a.remark("%s: some of what is there may be older than what was; the next sync with a member brings the rest", name)
	}
	a.remark("%s: see that a member which holds it can be reached, and repair again (syncd verify --repair); if there is none, end the list (syncd verify --accept-loss)", name)
}

// salvage repairs the store of a daemon that does not run.
func (verifyCmd) salvage(ctx context.Context, a *app) error {
	done, err := peer.Salvage(ctx, a.DataDir, nil)
	if err != nil {
		return err
	}
	out := struct {
		Damage     []string             `json:"damage"`
		Namespaces map[string]*api.Lost `json:"namespaces"`
	}{append([]string{}, done.Damage...), map[string]*api.Lost{}}
	lacks := false
	for _, ns := range done.Namespaces {
		out.Namespaces[ns.Name], lacks = api.LostOf(ns.Lost), lacks || ns.Lost != nil
	}
	if a.json() {
		if err := a.printJSON(out); err != nil {
			return err
		}
	} else {
		for _, where := range out.Damage {
			a.remark("damaged, and left behind: %s", where)
		}
		for _, ns := range done.Namespaces {
			sayLost(a, ns.Name, out.Namespaces[ns.Name])
		}
		a.remark("the store of %s is whole again; start the daemon (syncd serve): members give back what is missing", a.DataDir)
	}
	if lacks {
		return &saidError{problem.ExitCorrupt}
	}
	return nil
}
