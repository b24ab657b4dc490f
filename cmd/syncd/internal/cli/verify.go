package cli

import (
	"context"
	"errors"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
)

type verifyCmd struct {
	NS string `arg:"" optional:"" name:"ns" help:"The namespace's name; all, if it is left out."`
}

func (verifyCmd) Help() string {
	return `Reads the files of the store through, and each record beside the entry of its index, while the daemon goes on; exit code 7 says that something is damaged, and what. What the daemon keeps of the records for syncs is computed anew, and is put right where it is wrong. A daemon does the same by itself, slowly, once a day.

Examples:
    syncd verify
    syncd verify notes`
}

// Run verifies one namespace, or all of them.
func (c verifyCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	names := []string{c.NS}
	if c.NS == "" {
		all, err := daemon.Namespaces(ctx)
		if err != nil {
			return attempt(err, "list the namespaces")
		}
		names = names[:0]
		for _, ns := range all {
			names = append(names, ns.Name)
		}
	}
	var failed error
	found := map[string]api.Verification{}
	for _, name := range names {
		v, err := daemon.Verify(ctx, name)
		if err != nil {
			failed = errors.Join(failed, attempt(err, "verify %q", name))
			continue
		}
		found[name] = v
		if !a.json() {
			a.remark("%s: %d records are whole", name, v.Records)
			if v.Drift != "" {
				a.remark("%s: what the daemon kept of them had drifted and is put right: %s; please report it", name, v.Drift)
			}
		}
	}
	if failed != nil {
		return failed
	}
	if a.json() {
		if c.NS != "" {
			return a.printJSON(found[c.NS])
		}
		return a.printJSON(found)
	}
	return nil
}
