package cli

import (
	"context"

	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
)

type memberLapseCmd struct {
	NS string `arg:"" name:"ns" help:"The namespace's name."`
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
	err := daemon.Lapse(ctx, c.NS, c.ID, c.Force)
	return a.done(attempt(lacking(err, "syncd member ls %s lists the members", c.NS), "lapse member %s of %q", c.ID, c.NS), map[string]string{"lapsed": c.ID},
		"the members of %s do not wait for %s any more", c.NS, c.ID)
}
