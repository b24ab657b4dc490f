package cli

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/progress"
)

type exportCmd struct {
	NS       string `arg:"" name:"ns" help:"The namespace's name."`
	Prefix   string `help:"Only keys that begin with it." placeholder:"P"`
	Versions bool   `help:"With versions, and with deleted and expired records."`
}

func (exportCmd) Help() string {
	return `The lines are sorted by the bytes of the keys and have one canonical form: two nodes that hold the same records print the same bytes. Records from a dated import carry their time, records that expire the time when they do. What has expired by this machine's clock is left out, but for an export with versions, which no clock changes.

Examples:
    syncd export notes > notes.jsonl
    syncd export notes --versions | sha256sum`
}

// Run prints the lines.
func (c exportCmd) Run(ctx context.Context, a *app, daemon *client.Client) error {
	bars := a.bars()
	if progress.IsTerminal(a.stdout) {
		bars = nil // the lines themselves show how far it is
	}
	bar := bars.Bytes("export "+c.NS, 0) // how much will come is not known
	out := bufio.NewWriterSize(a.stdout, 1<<16)
	err := daemon.Export(ctx, c.NS, []byte(c.Prefix), c.Versions, &counted{out, bar})
	bar.Done()
	bars.Close()
	if err := errors.Join(err, out.Flush()); err != nil {
		return attempt(err, "export %q", c.NS)
	}
	return nil
}

// counted moves a bar by what is written.
type counted struct {
	w   io.Writer
	bar *progress.Bar
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.bar.Add(int64(n))
	return n, err
}
