package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/peer"
)

type batchCmd struct {
	NS   string `arg:"" name:"ns" help:"The namespace's name."`
	File string `arg:"" optional:"" default:"-" help:"File of a JSON list; - or nothing reads standard input."`
}

func (batchCmd) Help() string {
	return `The list has at most 4,096 items and 1.5 MiB of values and keys (which count twice):

    [{"key":"a","value":"one","ttl":"24h"},
     {"key":"b","value":"two","if_absent":true},
     {"key64":"/w==","value64":"AAE=","if_version":"VERSION"},
     {"key":"c","delete":true}]

key64 and value64 are base64, for bytes that are not UTF-8. Where a condition does not hold (exit 10), or an item is over a limit (exit 8), nothing is written; items are counted from 0. In a namespace of shards all keys are of one shard, and a quorum of its hosts takes the list. The versions are printed, in the order of the items. If too few hosts confirm it in time, they are, too, and the exit code is 8.

Example:
    syncd batch notes changes.json`
}

// Run sends the list.
func (c batchCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	in := a.stdin
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return fmt.Errorf("write a batch: %w", err)
		}
		defer func() { _ = f.Close() }() // read only
		in = f
	}
	list, err := io.ReadAll(io.LimitReader(in, api.MaxBatchBody+1))
	if err == nil && len(list) > api.MaxBatchBody {
		err = fmt.Errorf("%w: the list has more than %s", peer.ErrLimit, byteSize(api.MaxBatchBody))
	}
	if err != nil {
		return fmt.Errorf("write a batch: %w", err)
	}
	timeout := ""
	ctx, cancel := a.leaveTime(ctx, &timeout)
	defer cancel()
	versions, err := daemon.Batch(ctx, c.NS, list, timeout)
	err = attempt(err, "write a batch in %q", c.NS)
	if err != nil && len(versions) == 0 {
		return err
	}
	a.print(api.Versions{Versions: versions}, func() {
		for _, v := range versions {
			a.printf("%s\n", v)
		}
	})
	return err
}
