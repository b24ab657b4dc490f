package cli

import (
	"context"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
)

type restampCmd struct {
	NS     string `arg:"" name:"ns" help:"The namespace's name."`
	DryRun bool   `help:"List the records from the future, and change nothing."`
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
		f, err := daemon.Future(ctx, c.NS)
		return a.answer(attempt(err, "list what is from the future in %q", c.NS), f, func() {
			a.remark("this machine's clock says %s; a restamp would change %d records, and leave %d of other members", f.Now.Format(time.RFC3339), f.Own, f.Others)
			a.printFuture(f)
		})
	}
	r, err := daemon.Restamp(ctx, c.NS)
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
